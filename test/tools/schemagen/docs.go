package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// comments are the doc comments of one package.
type comments struct {
	// types by name, fields by "Type.Field".
	types, fields map[string]string
	// values are the constants of each named type in source order.
	values map[string][]value
}

type value struct{ text, doc string }

// readComments parses the package's files except its tests.
func readComments(dir string) (*comments, error) {
	c := &comments{types: map[string]string{}, fields: map[string]string{}, values: map[string][]value{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no Go files in %s", dir)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if gen, ok := d.(*ast.GenDecl); ok {
				c.addDecl(gen)
			}
		}
	}
	return c, nil
}

func (c *comments) addDecl(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			text := plain(s.Doc)
			if text == "" && len(gen.Specs) == 1 {
				text = plain(gen.Doc)
			}
			c.types[s.Name.Name] = text
			if st, ok := s.Type.(*ast.StructType); ok {
				c.addFields(s.Name.Name, st)
			}
		case *ast.ValueSpec:
			if gen.Tok == token.CONST {
				c.addConstants(s)
			}
		}
	}
}

func (c *comments) addFields(typ string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		text := plain(f.Doc)
		if text == "" {
			text = plain(f.Comment)
		}
		for _, name := range f.Names {
			c.fields[typ+"."+name.Name] = text
		}
	}
}

func (c *comments) addConstants(s *ast.ValueSpec) {
	typ, ok := s.Type.(*ast.Ident)
	if !ok {
		return
	}
	text := plain(s.Doc)
	if text == "" {
		text = plain(s.Comment)
	}
	for _, v := range s.Values {
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if word, err := strconv.Unquote(lit.Value); err == nil {
				c.values[typ.Name] = append(c.values[typ.Name], value{word, text})
			}
		}
	}
}

// plain is the comment with the lines of each paragraph joined.
func plain(g *ast.CommentGroup) string {
	paragraphs := strings.Split(strings.TrimSpace(g.Text()), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}
