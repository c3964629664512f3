// Package customresource checks CustomResourceDefinitions, and the objects of their kinds, with code of the API
// server. Therefore, users learn of a mistake before a control plane starts.
//
// The rules are those of the version of k8s.io/apiextensions-apiserver in go.mod.
package customresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Definition is a CustomResourceDefinition that the API server accepts, with the schema of the stored version.
type Definition struct {
	structural *schema.Structural
	complete   validation.SchemaValidator // of objects
	partial    validation.SchemaValidator // of merge patches, which may lack fields
	rules      *cel.Validator             // nil if the schema has no rules
	hasStatus  bool                       // whether the version has the subresource status
}

// Read decodes a CustomResourceDefinition of the version apiextensions.k8s.io/v1. It returns an error about the first
// field that the API server would refuse.
func Read(ctx context.Context, o *unstructured.Unstructured) (*Definition, error) {
	definition, err := decode(o)
	if err != nil {
		return nil, err
	}
	stored, err := apiextensions.GetCRDStorageVersion(definition)
	if err != nil {
		return nil, errors.New("spec.versions: found no version with storage: true; expected one")
	}
	definition.Namespace = "" // as when the API server creates it
	definition.Status = apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{stored}}
	for _, refused := range definitions.ValidateCustomResourceDefinition(ctx, definition) {
		return nil, fmt.Errorf("%s: %s", placeOf(refused.Field), textOf(refused))
	}
	resource, err := apiextensions.GetSchemaForVersion(definition, stored)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(definition, stored)
	if err != nil {
		return nil, err
	}
	d := &Definition{hasStatus: subresources != nil && subresources.Status != nil}
	if d.structural, err = schema.NewStructural(resource.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if d.complete, _, err = validation.NewSchemaValidator(resource.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	d.rules = cel.NewValidator(d.structural, true, apiservercel.PerCallLimit)
	makePartial(resource.OpenAPIV3Schema)
	d.partial, _, err = validation.NewSchemaValidator(resource.OpenAPIV3Schema)
	return d, err
}

// placeOf returns the place of a field in a manifest. In the type that the API server validates, the schema of a
// definition with one version is not inside the list of versions.
func placeOf(path string) string {
	path = strings.Replace(path, "].JSONPath", "].jsonPath", 1)
	for _, moved := range []struct{ from, to string }{
		{"spec.validation.", "spec.versions[0].schema."},
		{"spec.subresources.", "spec.versions[0].subresources."},
		{"spec.additionalPrinterColumns[", "spec.versions[0].additionalPrinterColumns["},
		{"spec.selectableFields[", "spec.versions[0].selectableFields["},
	} {
		if rest, ok := strings.CutPrefix(path, moved.from); ok {
			return moved.to + rest
		}
	}
	return path
}

// compileError matches the beginning of an error about a CEL expression. The groups are the line and the column.
var compileError = regexp.MustCompile(`(?:compilation failed: )?ERROR: <input>:(\d+):(\d+): `)

// ExpressionReason returns the first line of an error about a CEL expression in plain words.
func ExpressionReason(text string) string {
	reason, _, _ := strings.Cut(text, "\n")
	reason, _, _ = strings.Cut(compileError.ReplaceAllString(reason, "line $1, column $2: "), " expecting {") // all tokens of CEL
	return strings.Replace(reason, "mismatched input '<EOF>'", "the expression ends too early", 1)
}

// decode converts a CustomResourceDefinition to the type that the API server validates, with all defaults.
func decode(o *unstructured.Unstructured) (*apiextensions.CustomResourceDefinition, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := utiljson.Unmarshal(text, &external); err != nil { // unlike package json, it distinguishes upper and lower case
		if path, reason := inputfile.WrongValue(text, &external); path != "" {
			return nil, fmt.Errorf("%s: %s", path, reason)
		}
		return nil, errors.New(inputfile.JSONReason(err))
	}
	scheme.Default(&external)
	var definition apiextensions.CustomResourceDefinition
	return &definition, scheme.Convert(&external, &definition, nil)
}

// makePartial removes from a schema what an object may violate only because it lacks fields.
func makePartial(s *apiextensions.JSONSchemaProps) {
	s.Required, s.MinProperties = nil, nil
	s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	for name, property := range s.Properties {
		makePartial(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		makePartial(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		makePartial(s.AdditionalProperties.Schema)
	}
}

// Check returns an error for each field for which the API server would refuse an object. The detail of an error has what
// was found and what the API server says about it. The field is empty if the error is about the whole object. Check
// changes the object.
//
// A partial object is a merge patch: it may lack fields, and null removes a field.
func (d *Definition) Check(ctx context.Context, object map[string]any, partial bool) field.ErrorList {
	if partial && object["status"] != nil && !d.hasStatus {
		return field.ErrorList{field.Forbidden(field.NewPath("status"), "found a status, but the version has no subresources.status; expected a patch of other fields")}
	}
	validator := d.complete
	if partial {
		validator = d.partial
		removeNulls(object)
	} else { // as when the API server decodes the object
		defaulting.Default(object, d.structural)
		defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	}
	refused := validation.ValidateCustomResource(nil, object, validator)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if !partial && d.rules != nil && len(refused) == 0 { // a rule may fail because of other errors
		refused, _ = d.rules.Validate(ctx, nil, d.structural, object, nil, apiservercel.RuntimeCELCostBudget)
	}
	for _, e := range refused {
		e.Detail = textOf(e)
		e.Field = strings.TrimPrefix(e.Field, (*field.Path)(nil).String())
	}
	return refused
}

// removeNulls removes the fields that a merge patch removes from the object.
func removeNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			}
			removeNulls(inner)
		}
	case []any:
		for _, inner := range value {
			removeNulls(inner)
		}
	}
}

// textOf returns what was found in a field, if that is known, and what the API server says about it.
func textOf(refused *field.Error) string {
	detail := ExpressionReason(refused.Detail) // the detail may be about an expression
	if before, after, ok := strings.Cut(detail, " in body "); ok && strings.HasSuffix(refused.Field, before) {
		detail = after // otherwise, the detail begins with the field
	}
	if refused.Type == field.ErrorTypeRequired {
		return strings.TrimSuffix("found nothing; expected a value: "+detail, ": ")
	}
	switch found := refused.BadValue.(type) {
	case bool, int, int64, float64, string:
		text, err := json.Marshal(found)
		if rest, ok := strings.CutSuffix(detail, fmt.Sprintf(": %s", text)); ok && refused.Type == field.ErrorTypeTypeInvalid {
			return fmt.Sprintf("found a value of the type %v, which the API server refuses: %s", found, rest)
		}
		if err == nil && !slices.Contains(replaced, fmt.Sprint(found)) {
			return fmt.Sprintf("found %.80s, which the API server refuses: %s", text, detail)
		}
	}
	return "the API server refuses this: " + detail
}

// replaced lists texts that the API server gives in place of the found value: its type, nothing, or an omission.
var replaced = []string{"", "<value omitted>", "array", "boolean", "integer", "number", "object", "string"}
