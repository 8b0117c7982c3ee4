// Package webhook verifies webhooks. Copy this file into your program; it needs Go 1.18 or later.
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
//	signatures := r.Header.Values("X-Service-Signature")
//	secrets := []string{os.Getenv("WEBHOOK_SECRET")}
//	if err != nil || !webhook.Verify(signatures, body, secrets, time.Now().Unix()) {
//		w.WriteHeader(http.StatusBadRequest)
//		return
//	}
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// Tolerance is how many seconds a signature may be older or newer than the clock.
const Tolerance = 300

var (
	secretForm    = regexp.MustCompile(`^whsec_[!-~]{1,249}$`)
	partForm      = regexp.MustCompile(`^([!-<>-~]+)=([!-~]*)$`)
	timestampForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)
	digestForm    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Verify reports whether a delivery is genuine. It takes all values of the header, the body as
// received, before any JSON code, all secrets that are valid now, two during a rotation, and the
// clock in Unix seconds.
func Verify(signatures []string, body []byte, secrets []string, now int64) bool {
	return VerifyWithin(signatures, body, secrets, now, Tolerance)
}

// VerifyWithin is Verify with another tolerance.
func VerifyWithin(signatures []string, body []byte, secrets []string, now, tolerance int64) bool {
	timestamp, digests, ok := parse(signatures)
	if !ok {
		return false
	}
	genuine := false
	for _, secret := range secrets {
		if !secretForm.MatchString(secret) {
			continue
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(timestamp + "."))
		mac.Write(body)
		expected := hex.EncodeToString(mac.Sum(nil))
		for _, digest := range digests {
			genuine = hmac.Equal([]byte(digest), []byte(expected)) || genuine
		}
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64) // fails far in the future
	return genuine && err == nil && seconds >= now-tolerance && seconds <= now+tolerance
}

func parse(signatures []string) (timestamp string, digests []string, ok bool) {
	if len(signatures) != 1 || len(signatures[0]) > 1024 {
		return "", nil, false
	}
	parts := strings.Split(signatures[0], ",")
	for _, part := range parts {
		pair := partForm.FindStringSubmatch(strings.Trim(part, " \t"))
		if pair == nil {
			return "", nil, false
		}
		switch name, value := pair[1], pair[2]; {
		case name == "t" && (timestamp != "" || !timestampForm.MatchString(value)):
			return "", nil, false
		case name == "t":
			timestamp = value
		case name == "v1" && digestForm.MatchString(value):
			digests = append(digests, value) // another v1 may be good: ignore an ill-formed one
		}
	}
	return timestamp, digests, timestamp != "" && len(parts) <= 16
}
