using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;

/// <summary>Runs WebhookVerifier.cs over the table of vectors: Run TABLE.TSV.</summary>
static class Run
{
    static int Main(string[] args)
    {
        var rows = File.ReadAllLines(args[0], Encoding.UTF8).Skip(1).ToList();
        var passed = 0;
        foreach (var row in rows)
        {
            var cells = row.Split('\t');
            // Servers decode headers in one of these two ways.
            var found = new[] { Verdict(cells, Encoding.GetEncoding("iso-8859-1")), Verdict(cells, Encoding.UTF8) };
            if (found.All(verdict => verdict == cells[6])) passed++;
            else Console.Error.WriteLine("{0}: expected {1}, found {2}", cells[0], cells[6], string.Join(", ", found));
        }
        Console.WriteLine("{0}\t{1}\t{2}", Environment.Version, passed, rows.Count);
        return passed == rows.Count ? 0 : 1;
    }

    static string Verdict(string[] cells, Encoding encoding)
    {
        var signatures = List(cells[1], encoding);
        var secrets = List(cells[2], Encoding.UTF8);
        try
        {
            var body = Unhex(cells[3]);
            var now = long.Parse(cells[4]);
            // Most cases have the tolerance that is the default.
            var good = cells[5] == "300"
                ? WebhookVerifier.Verify(signatures, body, secrets, now)
                : WebhookVerifier.Verify(signatures, body, secrets, now, long.Parse(cells[5]));
            return good ? "accepted" : "refused";
        }
        catch (Exception e)
        {
            return e.ToString();
        }
    }

    static List<string> List(string cell, Encoding encoding)
    {
        if (cell == "-") return new List<string>();
        return cell.Split(',').Select(text => encoding.GetString(Unhex(text))).ToList();
    }

    static byte[] Unhex(string text)
    {
        return Enumerable.Range(0, text.Length / 2)
            .Select(i => Convert.ToByte(text.Substring(2 * i, 2), 16))
            .ToArray();
    }
}
