import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { clientSizes, ownLoadedBytes, typedHookBytes } from '../../packages/client/bench/sizes.mjs'

/** What a page may load, whatever its bundler. */
const MAX_LOADED_BYTES = 11_776

/** Of `useMessages`, `usePublish` and `useStatus`, with their types. */
const MAX_TYPED_HOOK_BYTES = 3_616

/** A table that changes with each commit would not be read. */
const MAX_DIFFERENCE_KIB = 0.1

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

it('docs/client.md has the sizes of all parts', async () => {
  // The table of versions ends its rows in the same way.
  const text = read('docs/client.md').replace(/^## Versions of libraries\n.*?(?=^## )/ms, '')
  const rows = [...text.matchAll(/^\| \[?`([^`]+)`.* \| ([\d.]+) \|$/gm)]
  const documented = new Map(rows.map(([, name = '', kib]) => [name, Number(kib)]))
  const sizes = await clientSizes()
  expect([...documented.keys()].toSorted()).toEqual(sizes.map(({ name }) => name).toSorted())
  const wrong = sizes.filter(
    ({ name, bytes }) => Math.abs(bytes / 1_024 - (documented.get(name) ?? 0)) > MAX_DIFFERENCE_KIB,
  )
  expect(wrong.map(({ name, bytes }) => `${name}: ${(bytes / 1_024).toFixed(1)} KiB`)).toEqual([])
})

it('typed hooks cost their own code only, and the docs say how much', async () => {
  const { one, all } = await typedHookBytes()
  expect(one).toBeLessThan(MAX_TYPED_HOOK_BYTES)
  const [, allKib, oneKib] =
    /the parts behind it, ([\d.]+) KiB instead of ([\d.]+) KiB/.exec(read('docs/client/react.md')) ?? []
  expect(Math.abs(all / 1_024 - Number(allKib))).toBeLessThanOrEqual(MAX_DIFFERENCE_KIB)
  expect(Math.abs(one / 1_024 - Number(oneKib))).toBeLessThanOrEqual(MAX_DIFFERENCE_KIB)
})

it('a page loads no more than its budget, and what the docs say', async () => {
  const loaded = await ownLoadedBytes()
  expect(Object.entries(loaded).filter(([, bytes]) => bytes > MAX_LOADED_BYTES)).toEqual([])
  const cells = /^\| WebMQ \| *\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|/m.exec(read('docs/client.md'))?.slice(1) ?? []
  for (const [index, bytes] of Object.values(loaded).entries()) {
    expect(Math.abs(bytes / 1_024 - Number(cells[index]))).toBeLessThanOrEqual(MAX_DIFFERENCE_KIB)
  }
  const readme = read('README.md')
  for (const place of [`client-${cells[0]}%20KiB`, `of ${cells[0]} KiB gzip`, `| ${cells[0]} KiB |`]) {
    expect(readme).toContain(place)
  }
})
