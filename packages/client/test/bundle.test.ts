import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** A page for production has this entry, and one in development the other. */
const ENTRIES = ['index', 'development']

async function bundle(entry: string) {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL(`../src/${entry}.ts`, import.meta.url).pathname],
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    write: false,
    metafile: true,
    outdir: '/bundle',
  })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path))
  return { codes: outputFiles.map(({ text }) => text), imports }
}

it.each(ENTRIES)('is one file, uses no Node API, and imports nothing, also not later: %s', async (entry) => {
  const { codes, imports } = await bundle(entry)
  expect(codes).toHaveLength(1)
  expect(codes[0]).not.toMatch(/\b(Buffer|process|require|__dirname|setImmediate)\b/)
  expect(imports).toEqual([])
})

it('has explanations in development alone', async () => {
  const [production, development] = await Promise.all(ENTRIES.map(async (entry) => (await bundle(entry)).codes.join()))
  for (const text of [
    'unknown option',
    'a key has no wildcards',
    'contains itself',
    'is the server running?',
    'protocol message is malformed',
  ]) {
    expect(development).toContain(text)
    expect(production).not.toContain(text)
  }
})
