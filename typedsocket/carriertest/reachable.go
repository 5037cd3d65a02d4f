package carriertest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Reachable returns where a text is found in what v holds, through unexported
// fields, maps, slices, arrays, pointers and interfaces: a path that begins with
// the one given, "" for nowhere. What v points to must not change meanwhile.
func Reachable(v any, text, path string) string {
	return reachable(reflect.ValueOf(v), []byte(text), path, map[[2]any]bool{})
}

func reachable(v reflect.Value, text []byte, path string, seen map[[2]any]bool) string {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), string(text)) {
			return path
		}
	case reflect.Pointer, reflect.Map:
		key := [2]any{v.Type(), v.UnsafePointer()}
		if v.IsNil() || seen[key] {
			return ""
		}
		seen[key] = true
		if v.Kind() == reflect.Pointer {
			return reachable(v.Elem(), text, path, seen)
		}
		for it := v.MapRange(); it.Next(); {
			if found := reachable(it.Key(), text, path+"[key]", seen); found != "" {
				return found
			}
			if found := reachable(it.Value(), text, path+"[...]", seen); found != "" {
				return found
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			return reachable(v.Elem(), text, path, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if found := reachable(v.Field(i), text, path+"."+v.Type().Field(i).Name, seen); found != "" {
				return found
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if bytes.Contains(bytesOf(v), text) {
				return path
			}
			return ""
		}
		for i := range v.Len() {
			if found := reachable(v.Index(i), text, fmt.Sprintf("%s[%d]", path, i), seen); found != "" {
				return found
			}
		}
	}
	return ""
}

// bytesOf returns the bytes of a slice, or a copy of those of an array, which may
// stand where it has no address.
func bytesOf(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice {
		return v.Bytes()
	}
	all := make([]byte, v.Len())
	for i := range all {
		all[i] = byte(v.Index(i).Uint())
	}
	return all
}
