// Runs verify.go over the table of vectors: run TABLE.TSV.
package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"languages/webhook"
)

func main() {
	table, err := os.ReadFile(os.Args[1])
	must(err)
	rows := strings.Split(strings.TrimRight(string(table), "\n"), "\n")[1:]
	passed := 0
	for _, row := range rows {
		cells := strings.Split(row, "\t")
		now, err := strconv.ParseInt(cells[4], 10, 64)
		must(err)
		tolerance, err := strconv.ParseInt(cells[5], 10, 64)
		must(err)
		body := []byte(unhex(cells[3]))
		signatures, secrets := list(cells[1]), list(cells[2])
		good := webhook.VerifyWithin(signatures, body, secrets, now, tolerance)
		if tolerance == webhook.Tolerance && webhook.Verify(signatures, body, secrets, now) != good {
			fmt.Fprintf(os.Stderr, "%s: the two functions differ\n", cells[0])
		} else if good != (cells[6] == "accepted") {
			fmt.Fprintf(os.Stderr, "%s: expected %s\n", cells[0], cells[6])
		} else {
			passed++
		}
	}
	fmt.Printf("%s\t%d\t%d\n", runtime.Version(), passed, len(rows))
	if passed != len(rows) {
		os.Exit(1)
	}
}

func list(cell string) (values []string) {
	if cell == "-" {
		return nil
	}
	for _, text := range strings.Split(cell, ",") {
		values = append(values, unhex(text))
	}
	return values
}

func unhex(text string) string {
	bytes, err := hex.DecodeString(text)
	must(err)
	return string(bytes)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
