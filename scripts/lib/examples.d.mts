import type { Service, ServiceKind } from 'webmq-services'

/** A Node program of an example: a file beside its `package.json`. */
export interface ExampleProgram {
  /** `server`, or the name of another file, such as `worker`. */
  readonly name: string
  /** Starts it; for the server, resolves once it is healthy. */
  start(): Promise<void>
  /** Ends it, by default with `SIGTERM`, and waits until it is gone. Does nothing if it does not run. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface RunningExample {
  /** Of the page, such as `http://127.0.0.1:5173/`. */
  readonly url: string
  readonly server: ExampleProgram
  /** All of them, the server too. */
  readonly programs: readonly ExampleProgram[]
  /** What was started for it, by the variable that tells the programs its address. */
  readonly services: Readonly<Record<string, Service>>
  /** What the environment tells the programs. */
  readonly env: Readonly<Record<string, string>>
  /** Stops the page and every program. */
  close(): Promise<void>
}

export interface ExampleOptions {
  /** Of the page; default 0, any free one. */
  readonly port?: number
  /** Whether the output of the programs is printed; default `false`. */
  readonly isShown?: boolean
  /** The service of an example that needs a broker; default `nats`. */
  readonly broker?: ServiceKind
}

export declare function startExample(name: string, options?: ExampleOptions): Promise<RunningExample>
