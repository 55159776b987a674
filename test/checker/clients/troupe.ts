import path from 'node:path'
import type { Company } from '../../../packages/check/src/actors/company.js'
import { Adapter } from '../../../packages/conformance/src/client/adapter.js'
import { ClientListener } from './client-listener.js'
import { ClientPublisher } from './client-publisher.js'
import { ClientReader } from './client-reader.js'
import { ClientStreamViewer } from './client-stream-viewer.js'
import { ClientStreamWriter } from './client-stream-writer.js'

/** What the adapter must be able to do: see packages/conformance. */
const NEEDS = 'checker'
/** A client waits up to 20 s between two attempts, and as long for one that hangs. */
const SETTLE_TIMEOUT_MS = 60_000

export interface Program {
  readonly command: readonly string[]
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
}

/** Adapters of this repository, whose root is the present folder. */
const KNOWN: Readonly<Record<string, () => Program>> = {
  javascript: () => ({ command: [process.execPath, path.resolve('packages/conformance/adapters/javascript.mjs')] }),
  python: () => {
    const { WEBMQ_TEST_PYTHON = 'python3', PYTHONPATH } = process.env
    const env = { ...process.env, PYTHONPATH: [path.resolve('clients/python/src'), PYTHONPATH].join(path.delimiter) }
    return { command: [WEBMQ_TEST_PYTHON, path.resolve('clients/python/tests/adapter.py')], env }
  },
  go: () => ({ command: ['go', 'run', './internal/adapter'], cwd: path.resolve('clients/go') }),
}

/** The clients of all plays, in one process: an adapter of packages/conformance. */
export class Troupe {
  readonly #adapter: Adapter
  #playCount = 0

  private constructor(adapter: Adapter) {
    this.#adapter = adapter
  }

  /** @param client One of the repository, or a command. @throws {Error} The adapter does not start, or can do too little. */
  static async start(client: string, given?: Program): Promise<Troupe> {
    const { command, cwd = process.cwd(), env } = given ?? KNOWN[client]?.() ?? { command: client.split(' ') }
    const adapter = new Adapter(command, cwd, env)
    const { name, can } = await adapter.hello
    if (!can.includes(NEEDS)) {
      await adapter.stop()
      throw new Error(`the adapter of ${name} cannot do what the checker needs: ${NEEDS}`)
    }
    return new Troupe(adapter)
  }

  /** The actors of one play. */
  company(): Company {
    const errors: { owner: string; text: string }[] = []
    const failed = (owner: string, error: unknown) => {
      errors.push({ owner, text: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
    const drive = { adapter: this.#adapter, prefix: `${++this.#playCount}.`, failed }
    return {
      listener: (options) => new ClientListener({ ...options, drive }),
      publisher: (options) => new ClientPublisher({ ...options, drive }),
      reader: (options) => new ClientReader({ ...options, drive }),
      writer: (options) => new ClientStreamWriter({ ...options, drive }),
      viewer: (options) => new ClientStreamViewer({ ...options, drive }),
      settleTimeoutMs: SETTLE_TIMEOUT_MS,
      errors,
    }
  }

  async stop(): Promise<void> {
    await this.#adapter.stop()
  }
}
