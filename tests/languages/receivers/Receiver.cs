// A receiver around WebhookVerifier: PORT, WEBHOOK_SECRET and STORED say where, with what, and into which file.
// It reads its sockets itself: of a header that comes twice, Mono's HttpListener shows only the last.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

static class Receiver
{
    static readonly Regex Id = new Regex("\"id\"\\s*:\\s*\"([^\"]*)\"");
    static readonly HashSet<string> Seen = new HashSet<string>();

    static void Main()
    {
        var listener = new TcpListener(IPAddress.Loopback, int.Parse(Environment.GetEnvironmentVariable("PORT")));
        listener.Start(128);
        while (true)
        {
            var client = listener.AcceptTcpClient();
            new Thread(() => Answer(client)).Start();
        }
    }

    static void Answer(TcpClient client)
    {
        try
        {
            var status = Status(new BufferedStream(client.GetStream()));
            var answer = "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            client.GetStream().Write(Encoding.ASCII.GetBytes(answer), 0, answer.Length);
        }
        catch (Exception)
        {
            // What came is not HTTP, or its sender is gone.
        }
        finally
        {
            client.Close();
        }
    }

    static string Status(Stream stream)
    {
        Line(stream);
        var headers = new List<string[]>();
        for (var line = Line(stream); line != ""; line = Line(stream)) headers.Add(line.Split(new[] { ':' }, 2));
        Func<string, List<string>> values = name => headers
            .Where(header => header[0].Equals(name, StringComparison.OrdinalIgnoreCase))
            .Select(header => header[1].Trim()).ToList();
        var body = new MemoryStream();
        if (values("Content-Length").Any()) Copy(stream, body, int.Parse(values("Content-Length")[0]));
        else
            for (var size = Convert.ToInt32(Line(stream), 16); size > 0; size = Convert.ToInt32(Line(stream), 16))
            {
                Copy(stream, body, size);
                Line(stream);
            }
        var secrets = Environment.GetEnvironmentVariable("WEBHOOK_SECRET").Split('\n');
        var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (!WebhookVerifier.Verify(values("X-Service-Signature"), body.ToArray(), secrets, now)) return "400 Bad Request";
        var id = Id.Match(Encoding.UTF8.GetString(body.ToArray())).Groups[1].Value;
        lock (Seen)
        {
            if (Seen.Add(id)) File.AppendAllText(Environment.GetEnvironmentVariable("STORED"), id + "\n");
        }
        return "204 No Content";
    }

    static string Line(Stream stream)
    {
        var line = new StringBuilder();
        for (var next = stream.ReadByte(); next >= 0 && next != '\n'; next = stream.ReadByte()) line.Append((char)next);
        return line.ToString().TrimEnd('\r');
    }

    static void Copy(Stream stream, Stream to, int length)
    {
        for (; length > 0; length--) to.WriteByte((byte)stream.ReadByte());
    }
}
