import { ROOT } from '../deploy/files.js'
import { findGo } from './go.js'
import { findPython } from './python.js'

/** A client that is tested, by its adapter. */
export interface TestedClient {
  readonly name: string
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Parts of cases that it has not. */
  readonly cannot: readonly string[]
}

const python = await findPython()
const go = await findGo()

export const CLIENTS: readonly [TestedClient, ...TestedClient[]] = [
  {
    name: 'webmq-client in Node',
    command: [process.execPath, `${ROOT}packages/conformance/adapters/javascript.mjs`],
    env: process.env,
    // It calls handlers at once: whoever is slow has a queue of their own. Browsers hide why a handshake is refused.
    cannot: ['slow readers', 'refusals'],
  },
  ...(python.program === undefined
    ? []
    : [
        {
          name: 'the client for Python',
          command: [python.program, `${ROOT}clients/python/tests/adapter.py`],
          env: python.env,
          cannot: [],
        },
      ]),
  ...(go.adapter === undefined
    ? []
    : [{ name: 'the client for Go', command: [go.adapter], env: process.env, cannot: ['presence'] }]),
]

/** Why others are not tested here. */
export const MISSING = [
  ...(python.missing === undefined ? [] : [`the client for Python: ${python.missing}`]),
  ...(go.missing === undefined ? [] : [`the client for Go: ${go.missing}`]),
]
