package awsapi

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// uuidOf is an id in the shape of a UUID that follows from the parts alone, so
// that two runs of one simulation give the same ids.
func uuidOf(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
