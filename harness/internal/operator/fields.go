package operator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// wrong returns an error about the value at a path. The argument expected says what the API server accepts there.
func wrong(at string, value any, expected string) error {
	text := fmt.Sprintf("%v", value)
	v := reflect.ValueOf(value)
	isList := v.IsValid() && (v.Kind() == reflect.Map || v.Kind() == reflect.Slice)
	switch {
	case value == nil || isList && v.Len() == 0 || v.Kind() == reflect.String && v.Len() == 0:
		text = "nothing"
	case v.Kind() == reflect.String:
		text = fmt.Sprintf("%.80q", v.String())
	}
	return fmt.Errorf("%s: found %s; expected %s", at, text, expected)
}

// oneOf returns a list of the known values for an error. Of several ones, it suggests one that is similar to the value.
func oneOf(known []string, value string) string {
	if len(known) == 1 {
		return known[0]
	}
	return nearest.List(known, "or") + nearest.Suggestion(value, known)
}

// firstError calls the checks in their order, and returns the first error.
func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// typeCheck returns an error about the value at a path. The value is a pointer to a value of a certain Go type.
type typeCheck func(at string, value any) error

// checkValues returns an error about the first field of a built-in object that the API server would refuse.
// It visits all fields, and calls the given checks for their Go types. The argument at is the path of the value,
// or "" for the object itself.
func checkValues(at string, v reflect.Value, checks map[reflect.Type]typeCheck) error {
	if v.CanAddr() {
		if check := checks[v.Type()]; check != nil {
			if err := check(at, v.Addr().Interface()); err != nil {
				return err
			}
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkValues(at, v.Elem(), checks)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkValues(fmt.Sprintf("%s[%d]", at, i), v.Index(i), checks); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkStruct(at, v, checks)
	case reflect.String:
		if known := knownValues[v.Type()]; known != nil && v.Len() > 0 && !slices.Contains(known, v.String()) {
			return wrong(at, v.String(), oneOf(known, v.String()))
		}
	case reflect.Int32, reflect.Int64:
		if name := at[strings.LastIndexByte(at, '.')+1:]; v.Int() < 0 && !slices.Contains(maybeNegative, name) {
			return wrong(at, v.Int(), "a number of at least 0")
		}
	}
	return nil
}

// maybeNegative has the fields of built-in objects that may have a negative number.
var maybeNegative = []string{"value", "priority", "tolerationSeconds", "terminationGracePeriodSeconds"}

// checkStruct calls [checkValues] for the fields of a struct. It leaves out the status, which the API server
// ignores.
func checkStruct(at string, v reflect.Value, checks map[reflect.Type]typeCheck) error {
	for field := range v.Type().Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "status" {
			continue
		}
		path := at
		if name != "" && !strings.Contains(options, "inline") {
			path = strings.TrimPrefix(at+"."+name, ".")
		}
		if err := checkValues(path, v.FieldByIndex(field.Index), checks); err != nil {
			return err
		}
	}
	return nil
}

// checkOf returns the check for a Go type as an argument of [checkValues].
func checkOf[T any](check func(at string, value *T) error) typeCheck {
	return func(at string, value any) error { return check(at, value.(*T)) }
}

// texts returns the values of a type of Kubernetes as texts.
func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}

// checkMetadata returns an error about the labels or annotations of an object or of a template.
func checkMetadata(at string, m *metav1.ObjectMeta) error {
	if err := checkLabels(at+".labels", m.Labels); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if len(apivalidation.ValidateAnnotations(map[string]string{key: ""}, nil)) > 0 {
			return wrong(at+".annotations", key, "a key such as example.com/description: a name with at most 63 letters, digits, -, _ and .")
		}
	}
	if apivalidation.ValidateAnnotationsSize(m.Annotations) != nil {
		limit := apivalidation.TotalAnnotationSizeLimitB
		return fmt.Errorf("%s.annotations: found more than %d bytes; expected at most %d", at, limit, limit)
	}
	for i, name := range m.Finalizers {
		if len(validation.IsQualifiedName(name)) > 0 {
			return wrong(fmt.Sprintf("%s.finalizers[%d]", at, i), name, "a name such as example.com/cleanup")
		}
	}
	return nil
}

// checkOwner returns an error about a reference to an owner that lacks one of its values.
func checkOwner(at string, o *metav1.OwnerReference) error {
	for _, field := range []struct{ name, value string }{{"apiVersion", o.APIVersion}, {"kind", o.Kind}, {"name", o.Name}, {"uid", string(o.UID)}} {
		if field.value == "" {
			return wrong(at+"."+field.name, nil, "the apiVersion, kind, name and uid of the owner")
		}
	}
	return nil
}

// checkLabels returns an error about a key or a value of labels.
func checkLabels(at string, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		if strings.Contains(value, "{{") {
			return fmt.Errorf("%s: found %.80q, an action of a Helm template; render the template with \"helm template\" first", at, value)
		}
		if len(metav1validation.ValidateLabels(map[string]string{key: value}, nil)) > 0 {
			return fmt.Errorf("%s: found %.80q with the value %.80q; expected a label such as app.kubernetes.io/name, with at most 63 letters, digits, -, _ and . as its value", at, key, value)
		}
	}
	return nil
}

// checkSelector returns an error about a label selector that the API server refuses.
func checkSelector(at string, s *metav1.LabelSelector) error {
	refused := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, nil).ToAggregate()
	if refused == nil {
		return nil
	}
	if err := checkLabels(at+".matchLabels", s.MatchLabels); err != nil {
		return err
	}
	for i, e := range s.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d]", at, i)
		operators := texts(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
		withValues := slices.Contains(operators[:2], string(e.Operator))
		switch {
		case len(validation.IsQualifiedName(e.Key)) > 0:
			return wrong(at+".key", e.Key, "the key of a label, such as app.kubernetes.io/name")
		case !slices.Contains(operators, string(e.Operator)):
			return wrong(at+".operator", e.Operator, oneOf(operators, string(e.Operator)))
		case withValues && len(e.Values) == 0:
			return wrong(at+".values", nil, "at least one value for the operator "+string(e.Operator))
		case !withValues && len(e.Values) > 0:
			return wrong(at+".values", e.Values, "no values for the operator "+string(e.Operator))
		}
		for j, value := range e.Values {
			if len(validation.IsValidLabelValue(value)) > 0 {
				return wrong(fmt.Sprintf("%s.values[%d]", at, j), value, "the value of a label: at most 63 letters, digits, -, _ and .")
			}
		}
	}
	return fmt.Errorf("%s: %w", at, refused)
}

// portRange says in errors what the number of a port must be.
const portRange = "the number of a port: 1 to 65535"

// portName says in errors what the name of a port must be.
const portName = "the name of a port: at most 15 of a-z, 0-9 and -, with at least one letter"

// checkPort returns an error about the number or name of a port to which requests go.
func checkPort(at string, port intstr.IntOrString) error {
	switch {
	case port.Type == intstr.String && len(validation.IsValidPortName(port.StrVal)) > 0:
		if port.IntValue() != 0 {
			return wrong(at, port.StrVal, "a number without quotes, or the name of a port")
		}
		return wrong(at, port.StrVal, portName)
	case port == intstr.FromInt32(0):
		return wrong(at, nil, portRange+", or the name of a port")
	case port.Type == intstr.Int && len(validation.IsValidPortNum(port.IntValue())) > 0:
		return wrong(at, port.IntValue(), portRange)
	}
	return nil
}

// checkResources returns an error about the requests and limits of a container.
func checkResources(at string, r *corev1.ResourceRequirements) error {
	known := texts(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.resources)) {
			at, quantity := fmt.Sprintf("%s.%s.%s", at, list.name, name), list.resources[name]
			limit, limited := r.Limits[name]
			other := !slices.Contains(known, string(name)) && !strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			switch {
			case other:
				return wrong(at, string(name), nearest.List(known, "or")+", or a resource such as example.com/gpu"+nearest.Suggestion(string(name), known))
			case quantity.Sign() < 0:
				return wrong(at, quantity.String(), "a quantity of at least 0")
			case list.name == "requests" && limited && quantity.Cmp(limit) > 0:
				return wrong(at, quantity.String(), "at most the limit "+limit.String())
			}
		}
	}
	return nil
}
