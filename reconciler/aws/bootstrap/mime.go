package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

const (
	nodeConfigType  = "application/node.eks.aws"
	shellType       = `text/x-shellscript; charset="us-ascii"`
	cloudConfigType = `text/cloud-config; charset="us-ascii"`
	contentType     = "Content-Type"
)

// part is one part of user data in MIME.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(kind, body string) part {
	return part{header: textproto.MIMEHeader{contentType: {kind}}, body: body}
}

// userParts are the parts of the class's user data: those of a MIME document, or
// one. What begins with "#!" is a script and with "#cloud-config" is cloud-init's; any other YAML
// map is a NodeConfig, and the rest is taken as a script.
func userParts(user string) ([]part, error) {
	trimmed := strings.TrimSpace(user)
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(trimmed, "MIME-Version:"), strings.HasPrefix(trimmed, contentType+":"):
		return splitParts(strings.TrimLeft(user, " \t\r\n"))
	case strings.HasPrefix(trimmed, "#cloud-config"):
		return []part{newPart(cloudConfigType, user)}, nil
	case !strings.HasPrefix(trimmed, "#!") && isMap(user):
		return []part{newPart(nodeConfigType, user)}, nil
	}
	return []part{newPart(shellType, user)}, nil
}

func isMap(text string) bool {
	var m map[string]any
	return yaml.Unmarshal([]byte(text), &m) == nil && len(m) > 0
}

// splitParts reads the parts of a MIME document, with their headers and without
// decoding them.
func splitParts(text string) ([]part, error) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("MIME document: %w: begin it with its headers and an empty line", err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get(contentType))
	if err != nil {
		return nil, fmt.Errorf("MIME document: %s: %w", contentType, err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return onePart(m)
	}
	if params["boundary"] == "" {
		return nil, fmt.Errorf("MIME document: the boundary is missing in its %s", contentType)
	}
	var out []part
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("MIME document: part %d: %w: end it with --%s--", len(out)+1, err, params["boundary"])
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("MIME document: part %d: %w: end it with --%s--", len(out)+1, err, params["boundary"])
		}
		if err := checkHeader(p.Header); err != nil {
			return nil, fmt.Errorf("MIME document: part %d: %w", len(out)+1, err)
		}
		out = append(out, part{header: p.Header, body: string(body)})
	}
}

// onePart is a MIME document without parts as a part.
func onePart(m *mail.Message) ([]part, error) {
	body, err := io.ReadAll(m.Body)
	if err != nil {
		return nil, fmt.Errorf("MIME document: %w", err)
	}
	header := textproto.MIMEHeader{}
	for _, key := range []string{contentType, "Content-Transfer-Encoding", "Content-Disposition"} {
		if v := m.Header.Get(key); v != "" {
			header.Set(key, v)
		}
	}
	if err := checkHeader(header); err != nil {
		return nil, fmt.Errorf("MIME document: %w", err)
	}
	return []part{{header: header, body: string(body)}}, nil
}

// checkHeader refuses what would end a line before its time in the document
// that the part is put into.
func checkHeader(h textproto.MIMEHeader) error {
	for _, key := range sortedKeys(h) {
		for _, text := range append([]string{key}, h[key]...) {
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
				return fmt.Errorf("header %q: has a control character: remove it", key)
			}
		}
	}
	return nil
}

// joinParts is the MIME document of the parts.
func joinParts(parts []part) string {
	boundary := freeBoundary(parts)
	var out bytes.Buffer
	fmt.Fprintf(&out, "MIME-Version: 1.0\n%s: multipart/mixed; boundary=%q\n\n", contentType, boundary)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\n", boundary)
		for _, key := range sortedKeys(p.header) {
			for _, value := range p.header[key] {
				fmt.Fprintf(&out, "%s: %s\n", key, value)
			}
		}
		// The line end before a boundary is not of the part.
		fmt.Fprintf(&out, "\n%s\n", p.body)
	}
	fmt.Fprintf(&out, "--%s--\n", boundary)
	return out.String()
}

// freeBoundary is Karpenter's boundary, or a longer one if a part has a line
// that begins with it.
func freeBoundary(parts []part) string {
	boundary := "//"
	for hasLine(parts, "--"+boundary) {
		boundary += "/"
	}
	return boundary
}

func hasLine(parts []part, prefix string) bool {
	for _, p := range parts {
		if strings.HasPrefix(p.body, prefix) || strings.Contains(p.body, "\n"+prefix) || strings.Contains(p.body, "\r"+prefix) {
			return true
		}
	}
	return false
}
