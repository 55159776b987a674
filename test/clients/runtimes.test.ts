import { afterAll, beforeAll, describe, it } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { runCase } from '../../packages/conformance/src/client/run-case.js'
import { readCases } from '../../packages/conformance/src/client/run-cases.js'
import { ROOT } from '../deploy/files.js'
import { bunProgram, denoProgram, installedNode } from '../packages/programs.mjs'

/** A registry brings the program, once. */
const INSTALL_MS = 300_000
const CASE_MS = 60_000
const ADAPTER = `${ROOT}packages/conformance/adapters/javascript.mjs`

const running = Number(process.versions.node.split('.')[0])
const nodes = [20, 22, 24].filter((major) => major !== running)

const RUNTIMES = [
  ...nodes.map((major) => ({
    name: `Node ${major}`,
    command: async () => [await installedNode(major), ADAPTER],
  })),
  { name: 'Bun', command: async () => [await bunProgram(), ADAPTER] },
  { name: 'Deno', command: async () => [await denoProgram(), 'run', '--allow-all', ADAPTER] },
]

/** A WebSocket of these does not say why a handshake is refused, and none of them reads slowly. */
const CANNOT = ['refusals', 'slow readers']
const cases = await readCases()

describe.each(RUNTIMES)('webmq-client in $name', ({ command }) => {
  let adapter: Adapter

  beforeAll(async () => {
    adapter = new Adapter(await command(), ROOT)
    await adapter.hello
  }, INSTALL_MS)
  afterAll(() => adapter.stop())

  for (const played of cases) {
    const missing = (played.needs ?? []).filter((need) => CANNOT.includes(need))
    if (missing.length > 0) {
      it.skip(`${played.name}: it cannot: ${missing.join(', ')}`, () => undefined)
      continue
    }
    it(`${played.name} [${played.clauses.join(', ')}]`, () => runCase(played, adapter), CASE_MS)
  }
})
