import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/** Runs WebhookVerifier.java over the table of vectors: Run TABLE.TSV. */
final class Run {
    public static void main(String[] args) throws Exception {
        List<String> rows = Files.readAllLines(Paths.get(args[0]), UTF_8);
        int passed = 0;
        for (String row : rows.subList(1, rows.size())) {
            String[] cells = row.split("\t", -1);
            // Servers decode headers in one of these two ways.
            String found = verdict(cells, ISO_8859_1), other = verdict(cells, UTF_8);
            if (found.equals(cells[6]) && other.equals(cells[6])) {
                passed++;
            } else {
                System.err.printf("%s: expected %s, found %s and %s%n", cells[0], cells[6], found, other);
            }
        }
        System.out.println(System.getProperty("java.version") + "\t" + passed + "\t" + (rows.size() - 1));
        System.exit(passed == rows.size() - 1 ? 0 : 1);
    }

    private static String verdict(String[] cells, Charset charset) {
        List<String> signatures = list(cells[1], charset), secrets = list(cells[2], UTF_8);
        byte[] body = unhex(cells[3]);
        long now = Long.parseLong(cells[4]), tolerance = Long.parseLong(cells[5]);
        try {
            boolean good = WebhookVerifier.verify(signatures, body, secrets, now, tolerance);
            if (tolerance == WebhookVerifier.TOLERANCE_SECONDS
                    && WebhookVerifier.verify(signatures, body, secrets, now) != good) {
                return "differently";
            }
            return good ? "accepted" : "refused";
        } catch (RuntimeException e) {
            return e.toString();
        }
    }

    private static List<String> list(String cell, Charset charset) {
        List<String> values = new ArrayList<>();
        for (String text : cell.equals("-") ? new String[0] : cell.split(",", -1)) {
            values.add(new String(unhex(text), charset));
        }
        return values;
    }

    private static byte[] unhex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }
}
