import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A receiver around WebhookVerifier: PORT, WEBHOOK_SECRET and STORED say where, with what, and into which file. */
public final class Receiver {
    private static final Pattern ID = Pattern.compile("\"id\"\\s*:\\s*\"([^\"]*)\"");

    private Receiver() {}

    public static void main(String[] args) throws Exception {
        List<String> secrets = Arrays.asList(System.getenv("WEBHOOK_SECRET").split("\n"));
        Path stored = Paths.get(System.getenv("STORED"));
        Set<String> seen = new HashSet<>();
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
        server.createContext("/", exchange -> {
            byte[] body = read(exchange.getRequestBody());
            List<String> signatures = exchange.getRequestHeaders().get("X-Service-Signature");
            int status = 400;
            if (WebhookVerifier.verify(signatures, body, secrets, Instant.now().getEpochSecond())) {
                Matcher id = ID.matcher(new String(body, StandardCharsets.UTF_8));
                synchronized (seen) {
                    if (id.find() && !seen.contains(id.group(1))) {
                        byte[] line = (id.group(1) + "\n").getBytes(StandardCharsets.UTF_8);
                        Files.write(stored, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                        seen.add(id.group(1));
                    }
                }
                status = 204;
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }

    private static byte[] read(InputStream stream) throws java.io.IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] chunk = new byte[8192];
        for (int n = stream.read(chunk); n >= 0; n = stream.read(chunk)) bytes.write(chunk, 0, n);
        return bytes.toByteArray();
    }
}
