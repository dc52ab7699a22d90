package awsapi

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// param is a parameter of a form: a value, or others below it.
type param struct {
	path  string
	value *string
	below map[string]*param
}

// params is the form as a tree: "Filter.1.Name" is below "Filter" and "1". A
// parameter that is given twice has its first value.
func params(form url.Values) *param {
	root := &param{below: map[string]*param{}}
	for _, key := range slices.Sorted(maps.Keys(form)) {
		at := root
		for part := range strings.SplitSeq(key, ".") {
			next, ok := at.below[part]
			if !ok {
				next = &param{path: strings.TrimPrefix(at.path+"."+part, "."), below: map[string]*param{}}
				at.below[part] = next
			}
			at = next
		}
		at.value = &form[key][0]
	}
	return root
}

// decode reads the form into the SDK's input of the action. A parameter that
// the action does not have is refused as EC2 refuses it.
func decode(form url.Values, into any) error {
	root := params(form)
	delete(root.below, "Action")
	delete(root.below, "Version")
	return root.into(reflect.ValueOf(into).Elem())
}

func (p *param) into(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return p.into(v.Elem())
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			return p.scalar(func(s string) (err error) { *t, err = time.Parse(time.RFC3339Nano, s); return err })
		}
		return p.intoStruct(v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return p.scalar(func(s string) error {
				b, err := base64.StdEncoding.DecodeString(s)
				v.SetBytes(b)
				return err
			})
		}
		return p.intoList(v)
	default:
		return p.scalar(func(s string) error { return setScalar(v, s) })
	}
}

func (p *param) intoStruct(v reflect.Value) error {
	fields, err := fieldsOf(wireTables().requests, v.Type())
	if err != nil {
		return err
	}
	if p.value != nil {
		return errorf("InvalidParameterValue", "Value (%s) for parameter %s is invalid: a structure was expected.", *p.value, p.path)
	}
	for _, key := range slices.Sorted(maps.Keys(p.below)) {
		i := slices.IndexFunc(fields, func(f wireField) bool { return f.wire == key })
		if i < 0 {
			return errorf("UnknownParameter", "The parameter %s is not recognized", p.below[key].path)
		}
		if err := p.below[key].into(v.FieldByName(fields[i].name)); err != nil {
			return err
		}
	}
	return nil
}

// intoList takes the entries in the order of their numbers.
func (p *param) intoList(v reflect.Value) error {
	byNumber := map[int]*param{}
	for key, sub := range p.below {
		n, err := strconv.Atoi(key)
		if err != nil || n < 1 {
			return errorf("UnknownParameter", "The parameter %s is not recognized", sub.path)
		}
		byNumber[n] = sub
	}
	if p.value != nil {
		return errorf("InvalidParameterValue", "Value (%s) for parameter %s is invalid: entries are numbered from 1.", *p.value, p.path)
	}
	list := reflect.MakeSlice(v.Type(), 0, len(byNumber))
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		entry := reflect.New(v.Type().Elem()).Elem()
		if err := byNumber[n].into(entry); err != nil {
			return err
		}
		list = reflect.Append(list, entry)
	}
	v.Set(list)
	return nil
}

// scalar gives the value to the function and says what is wrong with it.
func (p *param) scalar(set func(string) error) error {
	for _, key := range slices.Sorted(maps.Keys(p.below)) {
		return errorf("UnknownParameter", "The parameter %s is not recognized", p.below[key].path)
	}
	if err := set(*p.value); err != nil {
		return errorf("InvalidParameterValue", "Value (%s) for parameter %s is invalid.", *p.value, p.path)
	}
	return nil
}

func setScalar(v reflect.Value, s string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
		return nil
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		v.SetBool(b)
		return err
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, v.Type().Bits())
		v.SetInt(n)
		return err
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(s, v.Type().Bits())
		v.SetFloat(f)
		return err
	}
	return errors.New("no scalar")
}
