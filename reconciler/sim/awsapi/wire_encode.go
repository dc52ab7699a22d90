package awsapi

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// encode writes the SDK's output of the action as EC2 answers it. What is nil
// or an empty word is left out.
func encode(action string, output any) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<%sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>%s</requestId>", action, requestID)
	e := encoder{out: &b}
	v := reflect.ValueOf(output).Elem()
	if len(wireTables().responses[v.Type().String()]) == 0 {
		// CreateTags and the like only say that it went well.
		b.WriteString("<return>true</return>")
	}
	if err := e.fields(v); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "</%sResponse>", action)
	return b.String(), nil
}

type encoder struct{ out *strings.Builder }

func (e encoder) fields(v reflect.Value) error {
	fields, err := fieldsOf(wireTables().responses, v.Type())
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := e.element(f, v.FieldByName(f.name)); err != nil {
			return err
		}
	}
	return nil
}

// element writes one field with the element around it.
func (e encoder) element(f wireField, v reflect.Value) error {
	switch {
	case !v.IsValid():
		return fmt.Errorf("the tables of wire names have a field %s that its type lacks: generate them again", f.name)
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice:
		if v.IsNil() {
			return nil
		}
	case v.Kind() == reflect.String && v.Len() == 0:
		return nil
	}
	return e.wrap(f.wire, func() error { return e.value(f, v) })
}

func (e encoder) wrap(name string, write func() error) error {
	e.out.WriteString("<" + name + ">")
	if err := write(); err != nil {
		return err
	}
	e.out.WriteString("</" + name + ">")
	return nil
}

func (e encoder) value(f wireField, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return e.value(f, v.Elem())
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			e.out.WriteString(t.UTC().Format(timeForm))
			return nil
		}
		return e.fields(v)
	case reflect.Slice:
		if b, ok := v.Interface().([]byte); ok {
			e.out.WriteString(base64.StdEncoding.EncodeToString(b))
			return nil
		}
		for i := range v.Len() {
			if err := e.wrap(f.item, func() error { return e.value(f, v.Index(i)) }); err != nil {
				return err
			}
		}
		return nil
	default:
		return e.scalar(v)
	}
}

func (e encoder) scalar(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		// A strings.Builder takes everything.
		_ = xml.EscapeText(e.out, []byte(v.String()))
	case reflect.Bool:
		e.out.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int32, reflect.Int64:
		e.out.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Float32, reflect.Float64:
		e.out.WriteString(strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()))
	default:
		return fmt.Errorf("answers of EC2 hold no %s", v.Type())
	}
	return nil
}
