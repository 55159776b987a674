import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** An error of the compiler, and the line of it, from 1 on. */
export interface CompileError {
  readonly line: number
  readonly text: string
}

/** The compiler's answer for an app that has the package installed. */
export interface Compiled {
  readonly errors: readonly CompileError[]
  readonly instantiations: number
  readonly cpuMs: number
}

/** What all apps import: parsing it takes longer than the app. */
const parsed = new Map<string, ts.SourceFile | undefined>()

/** Type-checks the source of an app, strictly. */
export function compile(source: string): Compiled {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    // The declarations of the client name types of the DOM, whose library alone takes a second.
    skipLibCheck: true,
    types: [],
  }
  const file = fileURLToPath(new URL('./app.ts', import.meta.url))
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...rest) => {
    if (name === file) return ts.createSourceFile(name, source, ts.ScriptTarget.ES2022)
    if (!parsed.has(name)) parsed.set(name, read(name, ...rest))
    return parsed.get(name)
  }
  const program = ts.createProgram([file], options, host)
  const app = program.getSourceFile(file)
  const startMs = process.cpuUsage().user / 1_000
  const errors = [...program.getSyntacticDiagnostics(app), ...program.getSemanticDiagnostics(app)]
  const cpuMs = process.cpuUsage().user / 1_000 - startMs
  // As `tsc --extendedDiagnostics` prints it; not declared.
  const { getInstantiationCount } = program as ts.Program & { getInstantiationCount(): number }
  return {
    errors: errors.map(({ start = 0, messageText }) => ({
      line: source.slice(0, start).split('\n').length,
      text: ts.flattenDiagnosticMessageText(messageText, '\n'),
    })),
    instantiations: getInstantiationCount(),
    cpuMs,
  }
}
