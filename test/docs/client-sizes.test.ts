import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { clientSizes } from '../../scripts/lib/client-sizes.mjs'

/** A table that changes with each commit would not be read. */
const MAX_DIFFERENCE_KIB = 0.1

it('docs/client.md has the sizes of all parts', async () => {
  const text = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| \[?`(webmq-client[^`]*)`.* \| ([\d.]+) \|$/gm)]
  const documented = new Map(rows.map(([, name = '', kib]) => [name, Number(kib)]))
  const sizes = await clientSizes()
  expect([...documented.keys()].toSorted()).toEqual(sizes.map(({ name }) => name).toSorted())
  const wrong = sizes.filter(
    ({ name, bytes }) => Math.abs(bytes / 1_024 - (documented.get(name) ?? 0)) > MAX_DIFFERENCE_KIB,
  )
  expect(wrong.map(({ name, bytes }) => `${name}: ${(bytes / 1_024).toFixed(1)} KiB`)).toEqual([])
  const own = Number(/^\| WebMQ \| *\| ([\d.]+) \|$/m.exec(text)?.[1])
  expect(own).toBe(documented.get('webmq-client'))
})
