package main

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"docket/scheduler/pipeline"
)

func newSchema(a *app) *cobra.Command {
	files := []string{"config", "pipeline"}
	return &cobra.Command{
		Use:   "schema [config|pipeline]",
		Short: "Print the JSON Schema of docket.yaml or of a pipeline file",
		Long: `Print the JSON Schema (2020-12) of docket.yaml, or of the pipeline file that a repository
may have, for editors and other tools. It is made of the tables that docket itself reads
the files by. What spans several keys, and whether a secret or a name is there, only
"docket check" knows.`,
		Example: `  docket schema > docket.schema.json
  docket schema pipeline > pipeline.schema.json`,
		ValidArgs: files,
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef(cmd, "%s does not take %q", cmd.CommandPath(), args[1])
			case len(args) == 1 && !slices.Contains(files, args[0]):
				return usagef(cmd, "there is no schema of %q: use config or pipeline", args[0])
			}
			s := configSchema()
			if len(args) == 1 && args[0] == "pipeline" {
				s = pipelineSchema()
			}
			e := json.NewEncoder(a.out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(s)
		},
	}
}

// schema is a JSON Schema, or a part of one.
type schema map[string]any

func configSchema() schema {
	s := schemaOf(configKeys(), sectionTop)
	s["title"] = "docket.yaml"
	return s
}

// pipelineSchema takes the shapes of the pipeline file's keys from the keys of
// a project that have the same names.
func pipelineSchema() schema {
	keys := configKeys()
	tables := map[section]mapping{
		sectionTop:  likeOf(pipeline.FileKeys(), keys[sectionProject], "docket's pipeline file, which a repository has for itself"),
		sectionStep: likeOf(pipeline.StepKeys(), keys[sectionStep], keys[sectionStep].about),
	}
	s := schemaOf(tables, sectionTop)
	s["title"] = "docket's pipeline file"
	return s
}

func likeOf(keys []pipeline.Key, like mapping, about string) mapping {
	m := mapping{about: about}
	for _, k := range keys {
		shaped, ok := like.keyOf(k.Name)
		if !ok {
			panic("the pipeline file's key " + k.Name + " is like none of docket.yaml")
		}
		shaped.about, shaped.required, shaped.most, shaped.def = k.About, k.Required, k.Most, ""
		shaped.low, shaped.high = 0, 0 // the project's bounds are not the file's
		m.keys = append(m.keys, shaped)
	}
	return m
}

// schemaOf makes the schema of a file from its tables.
func schemaOf(tables map[section]mapping, root section) schema {
	defs := schema{}
	for s, m := range tables {
		if s != root {
			defs[string(s)] = m.schema()
		}
	}
	s := tables[root].schema()
	s["$schema"], s["$defs"] = "https://json-schema.org/draft/2020-12/schema", defs
	return s
}

func (m mapping) schema() schema {
	properties, required := schema{}, []string{}
	for _, k := range m.keys {
		properties[k.name] = k.schema()
		if k.required {
			required = append(required, k.name)
		}
	}
	s := schema{"type": "object", "description": m.about + ".", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if len(m.oneOf) > 0 {
		choices := []schema{}
		for _, name := range m.oneOf {
			choices = append(choices, schema{"required": []string{name}})
		}
		s["oneOf"] = choices
	}
	return s
}

func (s section) ref() schema { return schema{"$ref": "#/$defs/" + string(s)} }
