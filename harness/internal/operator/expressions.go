package operator

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kube-gauntlet/gauntlet/harness/internal/customresource"
)

// expression is a CEL expression of a webhook or policy.
type expression struct {
	name, text string      // the name is empty, except for a variable
	types      []*cel.Type // of the result that the API server accepts
}

func (e *expression) GetName() string          { return e.name }
func (e *expression) GetExpression() string    { return e.text }
func (e *expression) ReturnTypes() []*cel.Type { return e.types }

// webhookCompiler compiles the expressions of webhooks. It needs milliseconds to be made.
var webhookCompiler = sync.OnceValue(func() plugincel.Compiler {
	return plugincel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// check returns an error about an expression that the API server would not compile.
func (e *expression) check(path string, compiler plugincel.Compiler, hasParams bool) error {
	if strings.TrimSpace(e.text) == "" {
		return wrong(path, nil, "a CEL expression")
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}
	var result plugincel.CompilationResult
	if composed, ok := compiler.(*plugincel.CompositedCompiler); ok && e.name != "" {
		result = composed.CompileAndStoreVariable(e, options, environment.StoredExpressions)
	} else {
		result = compiler.CompileCELExpression(e, options, environment.StoredExpressions)
	}
	if result.Error == nil {
		return nil
	}
	return fmt.Errorf("%s: found %.80q; expected a CEL expression: %s", path, e.text, customresource.ExpressionReason(result.Error.Detail))
}

// checkConditions returns an error about the conditions under which a webhook or policy gets a request.
func checkConditions(at string, conditions []admissionv1.MatchCondition, hasParams bool) error {
	names := map[string]bool{}
	for i, c := range conditions {
		at := fmt.Sprintf("%s.matchConditions[%d]", at, i)
		switch {
		case len(validation.IsQualifiedName(c.Name)) > 0:
			return wrong(at+".name", c.Name, "a name such as exclude-leases")
		case names[c.Name]:
			return fmt.Errorf("%s.name: found %q twice; expected each name once", at, c.Name)
		}
		names[c.Name] = true
		e := &expression{text: c.Expression, types: []*cel.Type{cel.BoolType}}
		if err := e.check(at+".expression", webhookCompiler(), hasParams); err != nil {
			return err
		}
	}
	return nil
}

// checkPolicy returns an error about the expressions of a ValidatingAdmissionPolicy.
func checkPolicy(at string, p *admissionv1.ValidatingAdmissionPolicySpec) error {
	hasParams := p.ParamKind != nil
	if err := checkConditions(at, p.MatchConditions, hasParams); err != nil {
		return err
	}
	if len(p.Validations)+len(p.AuditAnnotations) == 0 {
		return wrong(at+".validations", nil, "at least one expression, or auditAnnotations")
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return err
	}
	check := func(at, name, text string, types ...*cel.Type) error {
		return (&expression{name: name, text: text, types: types}).check(at, compiler, hasParams)
	}
	for i, v := range p.Variables {
		if err := check(fmt.Sprintf("%s.variables[%d].expression", at, i), v.Name, v.Expression, cel.AnyType, cel.DynType); err != nil {
			return err
		}
	}
	for i, v := range p.Validations {
		at := fmt.Sprintf("%s.validations[%d]", at, i)
		if err := check(at+".expression", "", v.Expression, cel.BoolType); err != nil {
			return err
		}
		if v.MessageExpression == "" {
			continue
		}
		if err := check(at+".messageExpression", "", v.MessageExpression, cel.StringType); err != nil {
			return err
		}
	}
	for i, a := range p.AuditAnnotations {
		if err := check(fmt.Sprintf("%s.auditAnnotations[%d].valueExpression", at, i), "", a.ValueExpression, cel.StringType, cel.NullType); err != nil {
			return err
		}
	}
	return nil
}

// checkPolicyBinding returns an error about a binding of a ValidatingAdmissionPolicy.
func checkPolicyBinding(at string, b *admissionv1.ValidatingAdmissionPolicyBindingSpec) error {
	if b.PolicyName == "" {
		return wrong(at+".policyName", nil, "the name of a ValidatingAdmissionPolicy")
	}
	return missing(len(b.ValidationActions) == 0, at+".validationActions", "at least one of Deny, Warn and Audit")
}
