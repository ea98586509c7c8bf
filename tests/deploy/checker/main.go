// Command deploycheck reads what service/deploy holds as the programs that it is for do, and prints it as JSON, a value a line.
//
//	deploycheck kubernetes FOLDER      builds with kustomize, and decodes each object strictly into Kubernetes' own types
//	deploycheck compose FILE...        merges and interpolates files as Docker Compose does
//	deploycheck dockerfile FILE        parses with BuildKit, and runs the rules of its linter that need no build
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	checks := map[string]func([]string) error{"kubernetes": kubernetes, "compose": compose, "dockerfile": dockerfile}
	if len(os.Args) < 3 || checks[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: deploycheck kubernetes|compose|dockerfile PATH...")
		os.Exit(2)
	}
	if err := checks[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func kubernetes(paths []string) error {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), paths[0])
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return err
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		if err := print(object); err != nil {
			return err
		}
	}
	return nil
}

func compose(paths []string) error {
	options, err := cli.NewProjectOptions(paths, cli.WithOsEnv)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	return print(project)
}

func dockerfile(paths []string) error {
	text, err := os.ReadFile(paths[0])
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	warnings := 0
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, message string, _ []parser.Range) {
		warnings++
		fmt.Fprintf(os.Stderr, "%s: %s (%s)\n", rule, message, description)
	}})
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		return err
	}
	for _, warning := range parsed.Warnings {
		warnings++
		fmt.Fprintln(os.Stderr, warning.Short)
	}
	if warnings > 0 {
		return fmt.Errorf("%d warnings", warnings)
	}
	for _, stage := range stages {
		names := []string{}
		for _, command := range stage.Commands {
			names = append(names, command.Name())
		}
		if err := print(map[string]any{"name": stage.Name, "base": stage.BaseName, "commands": names}); err != nil {
			return err
		}
	}
	return nil
}

func print(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}
