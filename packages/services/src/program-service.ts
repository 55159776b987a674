import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Service, ServiceKind } from './service.js'
import { ServiceError } from './service-error.js'
import { type ProcessSpec, SupervisedProcess } from './supervised-process.js'

/** How to run a service from a program of this machine. */
export interface ServiceProgram {
  readonly kind: ServiceKind
  readonly url: string
  readonly source: 'binary' | 'package'
  /** Its data folder; removed by `stop`. */
  readonly folder: string
  /** Files and folders in `folder` that hold its data, without its settings. */
  readonly stores: readonly string[]
  /** Of the paths in `folder` of files that entries of a log are appended to. */
  readonly logFiles: RegExp
  readonly process: ProcessSpec
  /** A program that runs as long as the service, across its restarts. */
  readonly companions?: readonly SupervisedProcess[]
  readonly startTimeoutMs: number
  readonly stopTimeoutMs: number
  /** Resolves when the service answers in its own protocol. */
  ping(): Promise<void>
  /** Its log files beside its output, to explain a failed start. */
  log?(): Promise<string>
}

/** Time between two checks of a starting service. */
const PING_INTERVAL_MS = 20

/** Of the folder with a copy of the data. */
const KEPT = 'kept'

/** A folder of its own for a service's data. @param parent Default: that of the system for temporary files. */
export async function dataFolder(kind: string, parent = tmpdir()): Promise<string> {
  return await mkdtemp(path.join(parent, `webmq-${kind}-`))
}

/** A service that runs as a program on this machine and ends with this process. */
export class ProgramService implements Service {
  readonly #program: ServiceProgram
  #process: SupervisedProcess | undefined
  #stopped: Promise<void> | undefined
  /** CPU time of the processes before the last restart. */
  #pastCpuSeconds = 0

  /** Does not start it: `restart` does. */
  constructor(program: ServiceProgram) {
    this.#program = program
  }

  get kind(): ServiceKind {
    return this.#program.kind
  }

  get url(): string {
    return this.#program.url
  }

  get source(): 'binary' | 'package' {
    return this.#program.source
  }

  cpuSeconds(): number | undefined {
    const current = this.#process?.cpuSeconds()
    return current === undefined ? undefined : this.#pastCpuSeconds + current
  }

  peakRssBytes(): number | undefined {
    return this.#process?.peakRssBytes()
  }

  async kill(): Promise<void> {
    await this.#process?.kill()
  }

  async freeze(): Promise<void> {
    await this.#process?.freeze()
  }

  async thaw(): Promise<void> {
    this.#process?.signal('SIGCONT')
  }

  async restart(): Promise<void> {
    await this.thaw()
    await this.#process?.end(this.#program.stopTimeoutMs)
    if (this.#stopped !== undefined) throw new ServiceError(`${this.kind} has been stopped for good`)
    this.#pastCpuSeconds = this.cpuSeconds() ?? 0
    this.#process = new SupervisedProcess({ ...this.#program.process, folder: this.#program.folder })
    await this.#waitUntilReady(this.#process)
  }

  async wipe(): Promise<void> {
    await this.kill()
    await this.#removeStores(this.#program.folder)
    await this.restart()
  }

  async keepData(): Promise<void> {
    const { folder } = this.#program
    await this.thaw()
    await this.#process?.end(this.#program.stopTimeoutMs)
    await this.#removeStores(path.join(folder, KEPT))
    await this.#copyStores(folder, path.join(folder, KEPT))
    await this.restart()
  }

  async restoreData(): Promise<void> {
    const { folder } = this.#program
    await this.kill()
    await this.#removeStores(folder)
    await this.#copyStores(path.join(folder, KEPT), folder)
    await this.restart()
  }

  async damageLog(change: (bytes: Buffer) => Uint8Array): Promise<void> {
    const { folder, logFiles } = this.#program
    await this.kill()
    const names = (await readdir(folder, { recursive: true })).filter(
      (name) => logFiles.test(name) && !name.startsWith(KEPT),
    )
    const files = await Promise.all(
      names.map(async (name) => ({ name, mtimeMs: (await stat(path.join(folder, name))).mtimeMs })),
    )
    const newest = files.sort((a, b) => b.mtimeMs - a.mtimeMs)[0]
    if (newest === undefined) throw new ServiceError(`${this.kind} has no file of a log`)
    const file = path.join(folder, newest.name)
    await writeFile(file, change(await readFile(file)))
  }

  async #removeStores(folder: string): Promise<void> {
    for (const name of this.#program.stores)
      await rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 5 })
  }

  async #copyStores(from: string, to: string): Promise<void> {
    for (const name of this.#program.stores) {
      const source = path.join(from, name)
      if (existsSync(source)) await cp(source, path.join(to, name), { recursive: true, preserveTimestamps: true })
    }
  }

  async stop(): Promise<void> {
    this.#stopped ??= this.#end()
    await this.#stopped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #end(): Promise<void> {
    try {
      await this.thaw()
      await this.#process?.end(this.#program.stopTimeoutMs)
      await Promise.all((this.#program.companions ?? []).map((companion) => companion.kill()))
    } finally {
      await rm(this.#program.folder, { recursive: true, force: true, maxRetries: 5 })
    }
  }

  async #waitUntilReady(process: SupervisedProcess): Promise<void> {
    const { startTimeoutMs, ping } = this.#program
    const deadline = Date.now() + startTimeoutMs
    for (;;) {
      try {
        await ping()
        return
      } catch (cause) {
        if (process.isRunning && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, PING_INTERVAL_MS))
          continue
        }
        const reason = process.isRunning
          ? `gave no answer within ${startTimeoutMs / 1_000} s`
          : 'ended while it started'
        const log = `${process.output}\n${(await this.#program.log?.()) ?? ''}`.trim()
        await process.kill()
        throw new ServiceError(`${process.title} ${reason}${log === '' ? '' : `:\n${log}`}`, cause)
      }
    }
  }
}

/** Attempts to start when another program takes a free port before the service does. */
const MAX_START_ATTEMPTS = 5
const PORT_TAKEN = /address (?:already )?in use|eaddrinuse|already_in_use/i

/**
 * Starts the program that `prepare` describes; retries with other ports when one of them was taken in the meantime.
 * @throws {ServiceError} with the end of the program's output.
 */
export async function startProgram<S extends ProgramService>(prepare: () => Promise<S>): Promise<S> {
  for (let attempt = 1; ; attempt++) {
    const service = await prepare()
    try {
      await service.restart()
      return service
    } catch (error) {
      await service.stop()
      if (attempt >= MAX_START_ATTEMPTS || !PORT_TAKEN.test(String(error))) throw error
    }
  }
}
