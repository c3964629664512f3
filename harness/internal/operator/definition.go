package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/internal/customresource"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// definition has the fields of a CustomResourceDefinition of the version v1. A schema has no Go type here, because
// newer versions of Kubernetes add fields to schemas.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind       string   `json:"kind"`
			ListKind   string   `json:"listKind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions   []definitionVersion `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy"`
			Webhook  *struct {
				ClientConfig             map[string]any `json:"clientConfig"`
				ConversionReviewVersions []string       `json:"conversionReviewVersions"`
			} `json:"webhook"`
		} `json:"conversion"`
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
	} `json:"spec"`
	Status map[string]any `json:"status"`
}

// definitionVersion is a version of a [definition].
type definitionVersion struct {
	Name         string         `json:"name"`
	Served       bool           `json:"served"`
	Storage      bool           `json:"storage"`
	Schema       map[string]any `json:"schema"`
	Subresources struct {
		Status map[string]any `json:"status"`
		Scale  *struct {
			SpecReplicasPath   string `json:"specReplicasPath"`
			StatusReplicasPath string `json:"statusReplicasPath"`
			LabelSelectorPath  string `json:"labelSelectorPath"`
		} `json:"scale"`
	} `json:"subresources"`
	Deprecated               bool   `json:"deprecated"`
	DeprecationWarning       string `json:"deprecationWarning"`
	AdditionalPrinterColumns []struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Format      string `json:"format"`
		Description string `json:"description"`
		Priority    int32  `json:"priority"`
		JSONPath    string `json:"jsonPath"`
	} `json:"additionalPrinterColumns"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
}

// isDefinition reports whether an object is a CustomResourceDefinition of the version that [definition] describes.
func isDefinition(o *unstructured.Unstructured) bool {
	return o.GetAPIVersion() == "apiextensions.k8s.io/v1" && o.GetKind() == "CustomResourceDefinition"
}

// kindOf returns the kind that a CustomResourceDefinition defines. The field APIVersion of the
// result has the storage version.
func (s *objects) kindOf(ctx context.Context, o *unstructured.Unstructured) (scenario.ExternalKind, error) {
	if !isDefinition(o) {
		return scenario.ExternalKind{}, fmt.Errorf("apiVersion: found %.80q; expected apiextensions.k8s.io/v1", o.GetAPIVersion())
	}
	accepted, err := customresource.Read(ctx, withWebhookAddress(o))
	if err != nil {
		return scenario.ExternalKind{}, err
	}
	var d definition
	if err := decode(o, &d); err != nil {
		return scenario.ExternalKind{}, err
	}
	kind := scenario.ExternalKind{Kind: d.Spec.Names.Kind, Plural: d.Spec.Names.Plural, ClusterScoped: d.Spec.Scope == "Cluster"}
	for _, version := range d.Spec.Versions {
		if version.Storage {
			schema, _ := version.Schema["openAPIV3Schema"].(map[string]any)
			webhook := completes(s.mutated, d.Spec.Group, kind.Plural)
			kind.SetSchema(schema, func(object map[string]any, partial bool) field.ErrorList {
				return accepted.Check(ctx, object, partial || webhook)
			})
			kind.APIVersion = d.Spec.Group + "/" + version.Name
		}
	}
	return kind, nil
}

// withWebhookAddress returns a CustomResourceDefinition whose conversion webhook has an address, and leaves o as it is. A run
// replaces the address, so that it need not be valid.
func withWebhookAddress(o *unstructured.Unstructured) *unstructured.Unstructured {
	if webhook, _, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); webhook == nil {
		return o
	}
	o = o.DeepCopy()
	if err := unstructured.SetNestedField(o.Object, "https://localhost", "spec", "conversion", "webhook", "clientConfig", "url"); err != nil {
		return o // Read reports the wrong type
	}
	unstructured.RemoveNestedField(o.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	unstructured.RemoveNestedField(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	return o
}

// checkDefinition returns an error about a field of a CustomResourceDefinition that the API server would refuse.
func checkDefinition(o *unstructured.Unstructured) error {
	var d definition
	if err := decode(o, &d); err != nil {
		return err
	}
	if err := checkSimilarFields(o, &d); err != nil {
		return err
	}
	if err := checkName(o); err != nil {
		return err
	}
	if err := d.checkNames(); err != nil {
		return err
	}
	if d.Spec.Conversion.Webhook == nil && d.Spec.Conversion.Strategy == "Webhook" {
		return errors.New("spec.conversion.webhook: found nothing; expected the webhook of the strategy Webhook, or the strategy None")
	}
	return d.checkVersions()
}

// checkNames returns an error about the group, the names or the scope of the kind.
func (d *definition) checkNames() error {
	spec := d.Spec
	_, approved := d.Annotations["api-approved.kubernetes.io"]
	switch {
	case len(validation.IsDNS1123Subdomain(spec.Group)) > 0:
		return fmt.Errorf("spec.group: found %.80q; expected the domain of a group, such as example.com", spec.Group)
	case len(scheme.Scheme.PrioritizedVersionsForGroup(spec.Group)) > 0:
		return fmt.Errorf("spec.group: found %.80q, a group of Kubernetes; expected a group of your own, such as example.com", spec.Group)
	case !approved && (strings.HasSuffix("."+spec.Group, ".k8s.io") || strings.HasSuffix("."+spec.Group, ".kubernetes.io")):
		return fmt.Errorf("spec.group: found %.80q, which needs the annotation api-approved.kubernetes.io; expected a group of your own, such as example.com", spec.Group)
	case spec.Names.Kind != "" && !scenario.IsKindName(spec.Names.Kind):
		return fmt.Errorf("spec.names.kind: found %.80q; expected letters and digits that begin with an upper-case letter, such as Notebook", spec.Names.Kind)
	case len(validation.IsDNS1035Label(spec.Names.Plural)) > 0:
		return fmt.Errorf("spec.names.plural: found %.80q; expected lower-case letters, digits and - that begin with a letter, such as notebooks", spec.Names.Plural)
	case d.Name != spec.Names.Plural+"."+spec.Group:
		return fmt.Errorf("metadata.name: found %.80q; expected %s.%s, which is spec.names.plural and spec.group", d.Name, spec.Names.Plural, spec.Group)
	case spec.Scope != "Namespaced" && spec.Scope != "Cluster":
		return fmt.Errorf("spec.scope: found %.60q; expected Namespaced or Cluster", spec.Scope)
	}
	return nil
}

// checkVersions returns an error about the versions of the kind, and their schemas.
func (d *definition) checkVersions() error {
	versions := d.Spec.Versions
	if !slices.ContainsFunc(versions, func(v definitionVersion) bool { return v.Served }) {
		return errors.New("spec.versions: found no version with served: true; expected at least one, because no client can read or write the kind otherwise")
	}
	stored := ""
	for i, version := range versions {
		at := fmt.Sprintf("spec.versions[%d]", i)
		if len(validation.IsDNS1035Label(version.Name)) > 0 {
			return fmt.Errorf("%s.name: found %.80q; expected lower-case letters, digits and - that begin with a letter, such as v1", at, version.Name)
		}
		if first := slices.IndexFunc(versions, func(v definitionVersion) bool { return v.Name == version.Name }); first < i {
			return fmt.Errorf("%s.name: found %s twice; expected each version once", at, version.Name)
		}
		if version.Storage && stored != "" {
			return fmt.Errorf("%s.storage: found true, as for the version %s; expected one version with storage: true", at, stored)
		}
		if version.Storage {
			stored = version.Name
		}
		schema, ok := version.Schema["openAPIV3Schema"].(map[string]any)
		if !ok {
			return fmt.Errorf("%s.schema.openAPIV3Schema: found nothing; expected a schema%s", at, unknownFields(version.Schema))
		}
		if schema["type"] != "object" {
			return fmt.Errorf("%s.schema.openAPIV3Schema.type: found %s; expected object", at, found(schema["type"]))
		}
		if err := checkSchema(at+".schema.openAPIV3Schema", schema); err != nil {
			return err
		}
	}
	return nil
}

// found returns a value of a manifest as JSON, and "nothing" for a missing one.
func found(value any) string {
	text, err := json.Marshal(value)
	if value == nil || err != nil {
		return "nothing"
	}
	return fmt.Sprintf("%.60s", text)
}

// unknownFields returns a text about the fields beside a missing openAPIV3Schema, or "" without such
// fields. The only field with a meaning there is openAPIV3Schema.
func unknownFields(container map[string]any) string {
	if len(container) == 0 {
		return ""
	}
	return "; the fields there are unknown: " + strings.Join(slices.Sorted(maps.Keys(container)), ", ")
}

// checkLimits returns an error if a limit of a schema is no number.
func checkLimits(at string, schema map[string]any) error {
	for _, name := range []string{"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf"} {
		switch limit := schema[name].(type) {
		case nil, int64, float64:
		default:
			return fmt.Errorf("%s.%s: found %s; expected a number without quotes", at, name, found(limit))
		}
	}
	return nil
}

// schemaTypes are the types that a schema of a CustomResourceDefinition may name.
var schemaTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// schemaFields are fields that a schema of a CustomResourceDefinition may have. Newer versions of Kubernetes may have more.
var schemaFields = []string{
	"additionalItems", "additionalProperties", "allOf", "anyOf", "default", "definitions", "dependencies", "description", "enum", "example", "exclusiveMaximum", "exclusiveMinimum",
	"externalDocs", "format", "id", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
	"minimum", "multipleOf", "not", "nullable", "oneOf", "pattern", "patternProperties", "properties", "required", "title", "type", "uniqueItems",
}

// checkSchema returns an error if a schema has no type, an unknown one, or no items. It also examines the schemas
// of fields and items.
func checkSchema(at string, value any) error {
	schema, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: found %s; expected a schema such as {type: string}", at, found(value))
	}
	named, _ := schema["type"].(string)
	_, isList := schema["required"].([]any)
	switch {
	case schema["$ref"] != nil:
		return fmt.Errorf("%s.$ref: found %s; expected the schema itself, because API servers do not support references", at, found(schema["$ref"]))
	case named == "" && schema["x-kubernetes-int-or-string"] != true && schema["x-kubernetes-preserve-unknown-fields"] != true:
		return fmt.Errorf("%s.type: found %s; expected %s", at, found(schema["type"]), nearest.List(schemaTypes, "or"))
	case named != "" && !slices.Contains(schemaTypes, named):
		return fmt.Errorf("%s.type: found %.60q; expected %s%s", at, named, nearest.List(schemaTypes, "or"), nearest.Suggestion(named, schemaTypes))
	case named == "array" && schema["items"] == nil:
		return fmt.Errorf("%s.items: found nothing; expected the schema of the items", at)
	case schema["required"] != nil && !isList:
		return fmt.Errorf("%s.required: found %s; expected a list of the names of required fields, beside their properties", at, found(schema["required"]))
	}
	if err := checkLimits(at, schema); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if suggestion := nearest.Suggestion(name, schemaFields); !slices.Contains(schemaFields, name) && suggestion != "" {
			return fmt.Errorf("%s: unknown field %s%s", at, name, suggestion)
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	if schema["properties"] != nil && !ok {
		return fmt.Errorf("%s.properties: found %s; expected an object with a schema for each field", at, found(schema["properties"]))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := checkSchema(at+".properties."+name, properties[name]); err != nil {
			return err
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if _, permits := schema[name].(bool); schema[name] == nil || permits {
			continue
		}
		if err := checkSchema(at+"."+name, schema[name]); err != nil {
			return err
		}
	}
	return nil
}

// misspelledRequired returns an error about a required field of a CustomResourceDefinition that has no property, but a
// similar one exists.
func misspelledRequired(o *unstructured.Unstructured) error {
	var d definition
	if decode(o, &d) != nil {
		return nil
	}
	for i, version := range d.Spec.Versions {
		if err := checkRequired(fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), version.Schema["openAPIV3Schema"]); err != nil {
			return fmt.Errorf("%w; API servers accept this value, but refuse each object without the field", err)
		}
	}
	return nil
}

// checkRequired returns an error about a misspelled name in the list required of a schema. It also examines the schemas
// inside.
func checkRequired(at string, value any) error {
	schema, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	known := slices.Sorted(maps.Keys(properties))
	for i, name := range required {
		text, _ := name.(string)
		if similar := nearest.Suggestion(text, known); !slices.Contains(known, text) && similar != "" {
			return wrong(fmt.Sprintf("%s.required[%d]", at, i), text, "a name in properties"+similar)
		}
	}
	for _, name := range known {
		if err := checkRequired(at+".properties."+name, properties[name]); err != nil {
			return err
		}
	}
	return firstError(
		func() error { return checkRequired(at+".items", schema["items"]) },
		func() error { return checkRequired(at+".additionalProperties", schema["additionalProperties"]) },
	)
}
