import static java.nio.charset.StandardCharsets.US_ASCII;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies webhooks. Copy this file into your program; it needs Java 8 or later.
 *
 * <p>{@code signatures}: all values of the header X-Service-Signature. {@code body}: the bytes as
 * received, before any JSON code. {@code secrets}: all that are valid now, two during a rotation.
 * {@code now}: {@code Instant.now().getEpochSecond()}. Answer 400 unless the result is true.
 */
public final class WebhookVerifier {
    public static final long TOLERANCE_SECONDS = 300;

    private static final Pattern SECRET = Pattern.compile("whsec_[!-~]{1,249}");
    private static final Pattern PART = Pattern.compile("[ \t]*([!-<>-~]+)=([!-~]*)[ \t]*");
    private static final Pattern TIMESTAMP = Pattern.compile("0|[1-9][0-9]{0,18}");
    private static final Pattern DIGEST = Pattern.compile("[0-9a-f]{64}");

    private WebhookVerifier() {}

    public static boolean verify(List<String> signatures, byte[] body, List<String> secrets, long now) {
        return verify(signatures, body, secrets, now, TOLERANCE_SECONDS);
    }

    public static boolean verify(
            List<String> signatures, byte[] body, List<String> secrets, long now, long tolerance) {
        if (signatures == null || signatures.size() != 1 || signatures.get(0).length() > 1024) {
            return false;
        }
        String[] parts = signatures.get(0).split(",", -1);
        String timestamp = null;
        List<String> digests = new ArrayList<>();
        for (String part : parts) {
            Matcher pair = PART.matcher(part);
            if (!pair.matches()) {
                return false;
            }
            String name = pair.group(1), value = pair.group(2);
            if (name.equals("t")) {
                if (timestamp != null || !TIMESTAMP.matcher(value).matches()) {
                    return false;
                }
                timestamp = value;
            } else if (name.equals("v1") && DIGEST.matcher(value).matches()) {
                digests.add(value); // another v1 may be good, so an ill-formed one is ignored
            }
        }
        if (timestamp == null || parts.length > 16) {
            return false;
        }
        boolean genuine = false;
        for (String secret : secrets) {
            if (secret != null && SECRET.matcher(secret).matches()) {
                byte[] expected = hmac(secret, timestamp, body).getBytes(US_ASCII);
                for (String digest : digests) {
                    genuine |= MessageDigest.isEqual(digest.getBytes(US_ASCII), expected);
                }
            }
        }
        BigInteger age = BigInteger.valueOf(now).subtract(new BigInteger(timestamp));
        return genuine && age.abs().compareTo(BigInteger.valueOf(tolerance)) <= 0;
    }

    private static String hmac(String secret, String timestamp, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(US_ASCII), "HmacSHA256"));
            mac.update((timestamp + ".").getBytes(US_ASCII));
            return String.format(Locale.ROOT, "%064x", new BigInteger(1, mac.doFinal(body)));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e); // every Java has HmacSHA256
        }
    }
}
