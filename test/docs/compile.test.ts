import { join } from 'node:path'
import { Linter } from 'eslint'
import ts from 'typescript'
import tseslint from 'typescript-eslint'
import { expect, it } from 'vitest'
import { type BlockModule, modulesOf, ROOT } from './blocks.js'
import { blocksFor } from './examples.js'
import { blocksOf } from './page-blocks.mjs'

const { examples } = blocksFor(import.meta.url)

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.esnext.disposable.d.ts'],
  jsx: ts.JsxEmit.ReactJSX,
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  types: ['node'],
}

/** What the blocks take for granted. */
const AMBIENT = ['ambient.ts', 'untyped.d.ts'].map((file) => join(ROOT, 'test/docs', file))

/** Files that all programs share. */
const parsed = new Map<string, ts.SourceFile | undefined>()

/** Topics of all keys: what takes a client without topics alone does not compile with them. */
const ALL_TOPICS = "<{ '#': any }>"

/** The text of a block, or of what it takes for granted, as an app with topics writes it. */
function withTopics(text: string): string {
  const own = text.includes("'webmq-client/schema'") ? text : text.replaceAll(/\bsetup(?=\()/g, `setup${ALL_TOPICS}`)
  return own.replaceAll(/new WebMQClient(?=\()|const client: webmq\.WebMQClient\b/g, (found) => found + ALL_TOPICS)
}

/** A program of the blocks, none of which is a file. */
function programOf(modules: readonly BlockModule[], rewritten = (text: string) => text): ts.Program {
  const byPath = new Map(modules.map((module) => [module.path, module]))
  const host = ts.createCompilerHost(OPTIONS)
  const read = host.getSourceFile.bind(host)
  host.getSourceFile = (name, options, ...rest) => {
    const module = byPath.get(name)
    const text = module?.text ?? (AMBIENT.includes(name) ? ts.sys.readFile(name) : undefined)
    if (text !== undefined) return ts.createSourceFile(name, rewritten(text), options, true)
    if (!parsed.has(name)) parsed.set(name, read(name, options, ...rest))
    return parsed.get(name)
  }
  host.fileExists = (name) => byPath.has(name) || ts.sys.fileExists(name)
  return ts.createProgram([...byPath.keys(), ...AMBIENT], OPTIONS, host)
}

/** The compiler's errors in the blocks, each with its page and line. */
function errorsOf(modules: readonly BlockModule[], program = programOf(modules)): string[] {
  return modules.flatMap(({ block, path }) => {
    const file = program.getSourceFile(path)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      ({ messageText, start = 0 }) => {
        const { line } = file?.getLineAndCharacterOfPosition(start) ?? { line: 0 }
        const text = file?.text.split('\n')[line]?.trim()
        return `${block.page}:${block.line} ${text} // ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
      },
    )
  })
}

/** Blocks that declare topics for all modules would do so for the other blocks. */
const isForAll = ({ text }: BlockModule) => /^declare module 'webmq-client'/m.test(text)

it('blocks of code in the READMEs and docs compile', () => {
  const modules = modulesOf(examples())
  expect(modules.length).toBeGreaterThan(30)
  expect(errorsOf(modules.filter((module) => !isForAll(module)))).toEqual([])
  const forAll = modules.filter(isForAll)
  expect(forAll.length).toBeGreaterThan(0)
  for (const module of forAll) expect(errorsOf([module])).toEqual([])
})

it('blocks of code compile with a typed client, too', () => {
  const modules = modulesOf(examples()).filter((module) => !isForAll(module) && withTopics(module.text) !== module.text)
  expect(modules.length).toBeGreaterThan(20)
  expect(errorsOf(modules, programOf(modules, withTopics))).toEqual([])
})

/** Of the pages for apps in the browser: what their readers have is often created with these rules. */
const isOfClient = ({ block: { page } }: BlockModule) =>
  /^(README|docs\/(client|first-app|streams|presence)|packages\/client)/.test(page)

/** A page shows little of an app: what it leaves out, and short forms that a reader may write at more length. */
const OF_BLOCKS: Linter.RulesRecord = {
  ...Object.fromEntries(
    ['no-unused-vars', 'no-unused-expressions', 'no-non-null-assertion', 'no-base-to-string', 'require-await'].map(
      (rule) => [`@typescript-eslint/${rule}`, 'off'],
    ),
  ),
  '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
  '@typescript-eslint/no-confusing-void-expression': [
    'error',
    { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
  ],
  // Of other packages.
  '@typescript-eslint/no-deprecated': 'off',
}

it('blocks for the browser pass strictTypeChecked of typescript-eslint', () => {
  const modules = modulesOf(examples()).filter((module) => !isForAll(module) && isOfClient(module))
  expect(modules.length).toBeGreaterThan(20)
  expect(complaints(modules)).toEqual([])
  const taken = modulesOf(
    blocksOf(
      'docs/client/page.md',
      "```ts\nconst { publish } = new WebMQClient({ url: '' })\nvoid publish('a', 1)\n```",
    ),
  )
  expect(complaints(taken)).toEqual([expect.stringContaining('unbound-method')])
})

function complaints(modules: readonly BlockModule[]): string[] {
  const program = programOf(modules)
  const linter = new Linter({ cwd: ROOT })
  const config: Linter.Config[] = [
    { files: ['**/*.ts', '**/*.tsx'] },
    ...(tseslint.configs.strictTypeChecked as Linter.Config[]),
    { languageOptions: { parserOptions: { programs: [program] } }, rules: OF_BLOCKS },
  ]
  return modules.flatMap(({ block, path, text }) =>
    linter
      .verify(text, config, path)
      .map(
        ({ line, ruleId, message }) =>
          `${block.page}:${block.line} ${text.split('\n')[line - 1]?.trim()} // ${ruleId}: ${message}`,
      ),
  )
}

it('a block that does not compile is found with its page, also when it continues another', () => {
  const page = ['```ts', "const a = setup({ url: '' })", '```', '<!-- continues -->', '', '```ts', 'a.nope()', '```']
  const errors = errorsOf(modulesOf(blocksOf('docs/page.md', page.join('\n'))))
  expect(errors).toEqual([expect.stringMatching(/^docs\/page\.md:7 a\.nope\(\) \/\/ Property 'nope' does not exist/)])
  const alone = blocksOf('docs/page.md', page.slice(3).join('\n'))
  expect(() => modulesOf(alone)).toThrow('docs/page.md:4 continues nothing')
})
