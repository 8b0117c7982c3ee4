using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

/// <summary>Verifies webhooks. Copy this file into your program; it needs C# 7 or later.</summary>
/// <remarks>
/// signatures: all values of the header, Request.Headers["X-Service-Signature"]. body: the bytes as
/// received, before any JSON code. secrets: all that are valid now, two during a rotation. now:
/// DateTimeOffset.UtcNow.ToUnixTimeSeconds(). Answer 400 unless the result is true.
/// </remarks>
public static class WebhookVerifier
{
    static readonly Regex Secret = new Regex(@"\Awhsec_[!-~]{1,249}\z");
    static readonly Regex Part = new Regex(@"\A([!-<>-~]+)=([!-~]*)\z");
    static readonly Regex Timestamp = new Regex(@"\A(0|[1-9][0-9]{0,18})\z");
    static readonly Regex Digest = new Regex(@"\A[0-9a-f]{64}\z");

    public static bool Verify(
        IEnumerable<string> signatures, byte[] body, IEnumerable<string> secrets, long now, long tolerance = 300)
    {
        var headers = (signatures ?? Enumerable.Empty<string>()).ToList();
        if (headers.Count != 1 || headers[0].Length > 1024) return false;
        var parts = headers[0].Split(',');
        var timestamp = "";
        var digests = new List<string>();
        foreach (var part in parts)
        {
            var pair = Part.Match(part.Trim(' ', '\t'));
            if (!pair.Success) return false;
            string name = pair.Groups[1].Value, value = pair.Groups[2].Value;
            if (name == "t")
            {
                if (timestamp != "" || !Timestamp.IsMatch(value)) return false;
                timestamp = value;
            }
            else if (name == "v1" && Digest.IsMatch(value))
            {
                digests.Add(value); // another v1 may be good, so an ill-formed one is ignored
            }
        }
        if (timestamp == "" || parts.Length > 16) return false;

        var start = Encoding.ASCII.GetBytes(timestamp + ".");
        var genuine = false;
        foreach (var secret in secrets.Where(text => text != null && Secret.IsMatch(text)))
        {
            using (var hmac = new HMACSHA256(Encoding.ASCII.GetBytes(secret)))
            {
                hmac.TransformBlock(start, 0, start.Length, null, 0);
                hmac.TransformFinalBlock(body, 0, body.Length);
                var expected = BitConverter.ToString(hmac.Hash).Replace("-", "").ToLowerInvariant();
                foreach (var digest in digests) genuine |= FixedTimeEquals(digest, expected);
            }
        }
        var age = now - decimal.Parse(timestamp, NumberStyles.None, CultureInfo.InvariantCulture);
        return genuine && Math.Abs(age) <= tolerance;
    }

    // As CryptographicOperations.FixedTimeEquals, which .NET Framework and Mono lack.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static bool FixedTimeEquals(string a, string b)
    {
        if (a.Length != b.Length) return false;
        var difference = 0;
        for (var i = 0; i < a.Length; i++) difference |= a[i] ^ b[i];
        return difference == 0;
    }
}
