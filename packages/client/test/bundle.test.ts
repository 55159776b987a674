import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** Modules that are loaded when they are needed, and import nothing. `.size-limit.mjs` has their budgets. */
const LATER = ['refusal', 'token-defect']

interface Bundled {
  readonly entry: Uint8Array
  /** Files that the entry loads when it needs them, by name. */
  readonly later: ReadonlyMap<string, Uint8Array>
  /** Files that the entry imports before it runs. */
  readonly imports: readonly string[]
}

async function bundle(): Promise<Bundled> {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL('../src/index.ts', import.meta.url).pathname],
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    write: false,
    // Loaded where WebSockets fail; it shares the protocol with the entry.
    external: ['../sse/fallback.js'],
    metafile: true,
    outdir: '/bundle',
    chunkNames: '[name]',
  })
  const contents = new Map(
    outputFiles.map(({ path, contents }) => [/(\w[\w-]*)\.js$/.exec(path)?.[1] ?? path, contents]),
  )
  const entry = contents.get('index')
  if (!entry) throw new Error('esbuild made no entry')
  contents.delete('index')
  const imports = Object.values(metafile.outputs).flatMap((output) =>
    output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => path),
  )
  return { entry, later: contents, imports }
}

it('loads only explanations later', async () => {
  const { later } = await bundle()
  expect([...later.keys()].toSorted()).toEqual(LATER)
})

it('uses no Node API, and imports nothing', async () => {
  const { entry, later, imports } = await bundle()
  for (const file of [entry, ...later.values()]) {
    expect(new TextDecoder().decode(file)).not.toMatch(/\b(Buffer|process|require|__dirname|setImmediate)\b/)
  }
  expect(imports).toEqual([])
})
