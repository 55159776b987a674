import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** Decodes msgpackr's records too: it compiles the fourth record of a kind into a function, where that is allowed. */
const PROGRAM = `
import { Packr } from 'msgpackr'
import { msgpack } from '../src/parts/msgpack/index.js'

const rows = Array.from({ length: 10 }, (_, id) => ({ id, name: 'row ' + id }))
let isForbidden = false
try { new Function('return 1') } catch { isForbidden = true }
const own = msgpack.decode(msgpack.encode(rows))
const foreign = msgpack.decode(new Packr().pack(rows))
console.log(JSON.stringify({ isForbidden, isOwnRight: same(own), isForeignRight: same(foreign) }))
function same(read) { return JSON.stringify(read) === JSON.stringify(rows) }
`

it('works, as bundled for a browser, under a policy without code from strings', async () => {
  const { outputFiles } = await build({
    stdin: { contents: PROGRAM, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
  })
  const text = outputFiles[0]?.text ?? ''
  expect(text).not.toMatch(/\bcreateRequire\b|\bmsgpackr-extract\b/)
  // The effect of `script-src 'self'` in a browser; the demo page has that policy.
  const flags = ['--disallow-code-generation-from-strings', '--input-type=module']
  const output = execFileSync(process.execPath, flags, { input: text, encoding: 'utf8' })
  expect(JSON.parse(output)).toEqual({ isForbidden: true, isOwnRight: true, isForeignRight: true })
})
