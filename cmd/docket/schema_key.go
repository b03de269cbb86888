package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// What a text may consist of, where an editor can tell. The loader checks the
// same and more.
const (
	durationSchema = `^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h))+$`
	sizeSchema     = `^[0-9]+ *(B|KiB|MiB|GiB)?$`
	addressSchema  = `^[Hh][Tt][Tt][Pp][Ss]?://[^ ]+$`
)

// schema says what a key's value looks like.
func (k key) schema() schema {
	s := k.value()
	about := k.about
	switch {
	case k.high == 0:
	case k.shape == isDuration, k.shape == isInterval:
		about += fmt.Sprintf(" From %s to %s.", shortDuration(time.Duration(k.low)), shortDuration(time.Duration(k.high)))
	case k.shape == isSize:
		if about += " From " + formatSize(k.low); k.high < noBound {
			about += " to " + formatSize(k.high)
		} else {
			about += " up"
		}
		about += "."
	}
	s["description"] = about
	if k.def != "" {
		s["default"] = k.defaultValue()
	}
	return s
}

// defaultValue is the default as JSON: a number, true or false, or text.
func (k key) defaultValue() any {
	var v any
	if (k.shape == isWhole || k.shape == isFlag || k.shape == isShare) && json.Unmarshal([]byte(k.def), &v) == nil {
		return v
	}
	return k.def
}

// textTypes is what YAML makes of text that is not quoted, true and false left out.
func textTypes() []string { return []string{"string", "number"} }

func valueTypes() []string { return []string{"string", "number", "boolean"} }

func (k key) value() schema {
	switch k.shape {
	case isFlag:
		return schema{"type": "boolean"}
	case isName:
		return schema{"type": textTypes(), "pattern": namePattern().String()}
	case isAddress:
		return schema{"type": "string", "pattern": addressSchema}
	case isWhole:
		return k.number()
	case isDuration:
		return schema{"type": "string", "pattern": durationSchema}
	case isInterval:
		return schema{"anyOf": []schema{{"const": 0}, {"const": "0"}, {"type": "string", "pattern": durationSchema}}}
	case isSize:
		return schema{"type": []string{"string", "integer"}, "pattern": sizeSchema, "minimum": 0}
	case isWord:
		return schema{"enum": k.words}
	case isValue:
		return schema{"type": valueTypes()}
	case isMapping:
		return k.section.ref()
	case isEvent:
		return schema{"anyOf": []schema{{"type": "null"}, k.section.ref()}}
	case isNameOrMapping:
		return schema{"anyOf": []schema{{"type": textTypes(), "pattern": namePattern().String()}, k.section.ref()}}
	case isSecret:
		return sectionSecret.ref()
	case isSecretMap:
		return variablesOf(sectionSecret.ref())
	case isHeaders:
		return schema{"type": "object", "propertyNames": schema{"pattern": headerName().String()}, "additionalProperties": sectionSecret.ref()}
	case isShare:
		return schema{"type": "number", "minimum": 0, "maximum": 1}
	case isVariables:
		return variablesOf(schema{"type": valueTypes()})
	case isWords, isTexts, isPatterns, isValues, isWholes, isMappings, isSecrets:
		return k.list()
	}
	s := schema{"type": textTypes(), "minLength": 1}
	if k.pattern != "" {
		s["pattern"] = k.pattern
	}
	return s
}

func (k key) number() schema {
	s := schema{"type": "integer", "minimum": k.low}
	if k.high < noBound {
		s["maximum"] = k.high
	}
	return s
}

// list is a list's schema. One that may be empty says so in its key.
func (k key) list() schema {
	s := schema{"type": "array"}
	if !k.mayBeEmpty {
		s["minItems"] = 1
	}
	if k.most > 0 {
		s["maxItems"] = k.most
	}
	switch k.shape {
	case isWords:
		s["items"], s["uniqueItems"] = schema{"enum": k.words}, true
	case isTexts, isPatterns:
		s["items"] = schema{"type": textTypes(), "minLength": 1}
	case isValues:
		s["items"], s["uniqueItems"] = schema{"type": valueTypes()}, true
	case isWholes:
		s["items"], s["uniqueItems"] = k.number(), true
	case isMappings:
		s["items"] = k.section.ref()
	case isSecrets:
		s["items"] = sectionSecret.ref()
	}
	return s
}

func variablesOf(value schema) schema {
	return schema{"type": "object", "propertyNames": schema{"pattern": envName().String()}, "additionalProperties": value}
}
