package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// safeLetters are the characters of generated names in Kubernetes: no vowels,
// so that no words come out.
const safeLetters = "bcdfghjklmnpqrstvwxz2456789"

// safeHash is n characters that follow from the parts.
func safeHash(n int, parts ...any) string {
	sum := sha256.Sum256(fmt.Append(nil, parts...))
	out := make([]byte, n)
	for i := range out {
		out[i] = safeLetters[int(sum[i])%len(safeLetters)]
	}
	return string(out)
}

// hashOf is a digest of a value's JSON in safe letters.
func hashOf(n int, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Objects of the API always encode; the error text is as good a key.
		b = []byte(err.Error())
	}
	return safeHash(n, string(b))
}

// uid is a version 4 shaped UUID that follows from the parts.
func uid(parts ...any) types.UID {
	sum := sha256.Sum256(fmt.Append(nil, parts...))
	sum[6] = sum[6]&0x0f | 0x40
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return types.UID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
