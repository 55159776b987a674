import { join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { blocksOf } from '../../scripts/lib/docs-blocks.mjs'
import { type BlockModule, modulesOf, ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

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

/** The compiler's errors in the blocks, each with its page and line. */
function errorsOf(modules: readonly BlockModule[]): string[] {
  const byPath = new Map(modules.map((module) => [module.path, module]))
  const host = ts.createCompilerHost(OPTIONS)
  const read = host.getSourceFile.bind(host)
  host.getSourceFile = (name, options, ...rest) => {
    const module = byPath.get(name)
    if (module) return ts.createSourceFile(name, module.text, options)
    if (!parsed.has(name)) parsed.set(name, read(name, options, ...rest))
    return parsed.get(name)
  }
  host.fileExists = (name) => byPath.has(name) || ts.sys.fileExists(name)
  const program = ts.createProgram([...byPath.keys(), ...AMBIENT], OPTIONS, host)
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

it('blocks of code in the READMEs and docs compile', { timeout: 120_000 }, () => {
  const modules = modulesOf(examples())
  expect(modules.length).toBeGreaterThan(30)
  expect(errorsOf(modules.filter((module) => !isForAll(module)))).toEqual([])
  const forAll = modules.filter(isForAll)
  expect(forAll.length).toBeGreaterThan(0)
  for (const module of forAll) expect(errorsOf([module])).toEqual([])
})

it('a block that does not compile is found with its page, also when it continues another', () => {
  const page = ['```ts', "const a = setup({ url: '' })", '```', '<!-- continues -->', '', '```ts', 'a.nope()', '```']
  const errors = errorsOf(modulesOf(blocksOf('docs/page.md', page.join('\n'))))
  expect(errors).toEqual([expect.stringMatching(/^docs\/page\.md:7 a\.nope\(\) \/\/ Property 'nope' does not exist/)])
  const alone = blocksOf('docs/page.md', page.slice(3).join('\n'))
  expect(() => modulesOf(alone)).toThrow('docs/page.md:4 continues nothing')
})
