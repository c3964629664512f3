// Package customresource checks CustomResourceDefinitions, and the objects of their kinds, with code of the API
// server. Therefore, users learn of a mistake before a control plane starts.
//
// The rules are those of the version of k8s.io/apiextensions-apiserver in go.mod.
package customresource

import (
	"context"
	"encoding/json"
	"fmt"
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
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
)

// Definition is a CustomResourceDefinition that the API server accepts.
type Definition struct {
	schema  *apiextensions.JSONSchemaProps // of the stored version
	partial *apiextensions.JSONSchemaProps // like schema, for objects that lack fields
	status  bool                           // whether the kind has the subresource status
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
		return nil, fmt.Errorf("spec.versions: found no version with storage: true; expected one")
	}
	definition.Status = apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{stored}} // as when the API server creates it
	for _, refused := range definitions.ValidateCustomResourceDefinition(ctx, definition) {
		return nil, fmt.Errorf("%s: %s", placeOf(refused.Field), textOf(refused))
	}
	complete, err := apiextensions.GetSchemaForVersion(definition, stored)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(definition, stored)
	if err != nil {
		return nil, err
	}
	d := &Definition{schema: complete.OpenAPIV3Schema, partial: complete.OpenAPIV3Schema.DeepCopy(), status: subresources != nil && subresources.Status != nil}
	makePartial(d.partial)
	return d, nil
}

// placeOf returns the place of a field in a manifest. The type that the API server validates has what all versions
// have in common beside the versions. So a definition of one version has its schema there.
func placeOf(path string) string {
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

// decode converts a CustomResourceDefinition to the type that the API server validates, with all defaults.
func decode(o *unstructured.Unstructured) (*apiextensions.CustomResourceDefinition, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &external); err != nil {
		return nil, err
	}
	scheme.Default(&external)
	var definition apiextensions.CustomResourceDefinition
	return &definition, scheme.Convert(&external, &definition, nil)
}

// makePartial removes from a schema what an object may violate only because it lacks fields.
func makePartial(s *apiextensions.JSONSchemaProps) {
	s.Required, s.MinProperties, s.XValidations = nil, nil, nil
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

// Check returns an error for each field of an object that the API server would refuse. The detail of an error has what
// was found and what the API server says about it. Check changes the object.
//
// A partial object is a merge patch: it may lack fields, and null removes a field.
func (d *Definition) Check(ctx context.Context, object map[string]any, partial bool) field.ErrorList {
	props := d.schema
	if partial {
		if object["status"] != nil && !d.status {
			return field.ErrorList{field.Forbidden(field.NewPath("status"), "found a status, but the version has no subresources.status; expected a patch of other fields")}
		}
		props = d.partial
		removeNulls(object)
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if !partial {
		defaulting.Default(object, structural)
	}
	refused := validation.ValidateCustomResource(nil, object, validator)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if rules := cel.NewValidator(structural, true, apiservercel.PerCallLimit); rules != nil && len(refused) == 0 { // a rule may fail on other errors
		refused, _ = rules.Validate(ctx, nil, structural, object, nil, apiservercel.RuntimeCELCostBudget)
	}
	for _, e := range refused {
		e.Detail = textOf(e)
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
	detail, _, _ := strings.Cut(refused.Detail, "\n")
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
