import { afterAll, beforeAll, describe, it } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { runCase } from '../../packages/conformance/src/client/run-case.js'
import { readCases } from '../../packages/conformance/src/client/run-cases.js'
import { ROOT } from '../deploy/files.js'
import { findGo } from './go.js'
import { findPython } from './python.js'

/** A case has pauses of five seconds at most, and a busy machine takes its time. */
const CASE_MS = 60_000

const cases = await readCases()
const python = await findPython()
const go = await findGo()

const CLIENTS = [
  {
    name: 'webmq-client in Node',
    command: [process.execPath, `${ROOT}packages/conformance/adapters/javascript.mjs`],
    env: process.env,
    // It calls handlers at once: whoever is slow has a queue of their own.
    cannot: ['slow readers'],
  },
  ...(python.program === undefined
    ? []
    : [
        {
          name: 'the client for Python',
          command: [python.program, `${ROOT}clients/python/tests/adapter.py`],
          env: python.env,
          cannot: [] as string[],
        },
      ]),
  ...(go.adapter === undefined
    ? []
    : [{ name: 'the client for Go', command: [go.adapter], env: process.env, cannot: ['presence'] }]),
]

describe.each(CLIENTS)('$name', ({ command, env, cannot }) => {
  let adapter: Adapter

  beforeAll(async () => {
    adapter = new Adapter(command, ROOT, env)
    await adapter.hello
  })
  afterAll(() => adapter.stop())

  for (const played of cases) {
    if (played.needs?.some((need) => cannot.includes(need))) continue
    it(`${played.name} [${played.clauses.join(', ')}]`, () => runCase(played, adapter), CASE_MS)
  }
})

if (python.missing !== undefined) it.skip(`the client for Python: ${python.missing}`, () => undefined)
if (go.missing !== undefined) it.skip(`the client for Go: ${go.missing}`, () => undefined)
