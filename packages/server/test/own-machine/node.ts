import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { freePort } from 'webmq-services'

const BIN = fileURLToPath(new URL('../../bin/webmq-server.js', import.meta.url))
const ENVIRONMENT = { PATH: process.env.PATH, WEBMQ_NATIVE_ADDON: process.env.WEBMQ_NATIVE_ADDON }
/** Within this time, a node that serves answers a probe. */
const HEALTH_LIMIT_MS = 1_000
/** On a machine that is busy, one of so many probes is answered in time. Of a node that stands still, none is. */
const PROBES = 5
const EXIT_LIMIT_MS = 20_000

export interface Outputs {
  readonly stdout?: number | undefined
  readonly stderr?: number | undefined
}

/** A real `webmq-server` process. Its standard streams may be descriptors of the test. */
export class MachineNode {
  readonly port: number
  readonly child: ChildProcess
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>
  /** Of the streams that are the test's pipes. */
  output = ''

  constructor(port: number, child: ChildProcess) {
    this.port = port
    this.child = child
    this.exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    }
  }

  static async start(
    args: readonly string[],
    { stdout, stderr }: Outputs = {},
    env: NodeJS.ProcessEnv = {},
  ): Promise<MachineNode> {
    const port = await freePort()
    const child = spawn(
      process.execPath,
      [BIN, '--port', `${port}`, '--log-level', 'debug', '--log-format', 'json', ...args],
      {
        stdio: ['ignore', stdout ?? 'pipe', stderr ?? 'pipe'],
        env: { ...ENVIRONMENT, ...env },
      },
    )
    return new MachineNode(port, child)
  }

  get hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Resolves when it serves. @returns Whether it does, and has not ended. */
  async serves(): Promise<boolean> {
    await vi.waitFor(
      async () => {
        if (!this.hasExited) await this.#get('/health')
      },
      { timeout: 60_000, interval: 50 },
    )
    return !this.hasExited
  }

  /** The status of the first probe that is answered in time; 0: none was. */
  async health(): Promise<number> {
    for (let probe = 0; probe < PROBES; probe++) {
      const status = await this.#get('/health').then(
        (response) => response.status,
        () => 0,
      )
      if (status !== 0) return status
    }
    return 0
  }

  async isDraining(): Promise<void> {
    await vi.waitFor(async () => {
      if ((await this.#get('/ready')).status !== 503) throw new Error('it does not drain')
    })
  }

  /** Lines of the log or the audit log that are not written. */
  async missing(log: 'log' | 'audit'): Promise<{ readonly dropped: number; readonly waitingBytes: number }> {
    const page = await (await this.#get('/metrics')).text()
    const value = (series: string) =>
      Number(
        page
          .split('\n')
          .find((line) => line.startsWith(series))
          ?.split(' ')[1],
      )
    return {
      dropped: value(`webmq_${log}_lines_total{outcome="dropped"}`),
      waitingBytes: value(`webmq_${log}_lines_waiting_bytes`),
    }
  }

  #get(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.port}${path}`, { signal: AbortSignal.timeout(HEALTH_LIMIT_MS) })
  }

  /** Upgrades, of which each is a line of the log, of the audit log and, by a hook, of standard output. */
  async causeLines(): Promise<void> {
    const connection = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    for (const origin of ['http://evil.example', undefined]) {
      const headers = { ...connection, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', ...(origin && { origin }) }
      const asked = request({ port: this.port, path: '/ws', headers, timeout: 5_000 })
      await new Promise((resolve) => {
        asked.on('response', resolve).on('upgrade', (_response, socket) => {
          socket.destroy()
          resolve(undefined)
        })
        asked
          .on('error', resolve)
          .on('timeout', () => asked.destroy())
          .end()
      })
    }
  }

  /** @returns Its exit code or the signal that has ended it; `'still there'`. */
  async ended(limitMs = EXIT_LIMIT_MS): Promise<number | string | null> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), limitMs)
    const [code, signal] = await this.exited
    clearTimeout(timer)
    return signal === 'SIGKILL' ? 'still there' : (code ?? signal)
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}

/** How a command whose standard output is a descriptor ends: with this code, and this on standard error. */
export async function endOf(args: readonly string[], stdout: number): Promise<readonly [number | null, string]> {
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', stdout, 'pipe'], env: ENVIRONMENT })
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return [code, errors]
}
