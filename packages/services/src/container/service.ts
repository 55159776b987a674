import type { StartedTestContainer } from 'testcontainers'
import { freePort } from '../free-port.js'
import type { Service, ServiceKind } from '../service.js'
import { ServiceError } from '../service-error.js'
import { waitFor } from '../wait-for.js'
import { findContainerRuntime } from './runtime.js'

/** How to run a service in a container. */
export interface ContainerSpec {
  readonly kind: ServiceKind
  readonly image: string
  /** The port it listens on inside. */
  readonly port: number
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Files to put inside: path and text. */
  readonly files?: Readonly<Record<string, string>>
  urlOf(port: number): string
  /** Resolves when the service answers on a port of loopback. */
  ping(port: number): Promise<void>
}

/** Includes the time to fetch an image. */
const CREATE_TIMEOUT_MS = 300_000
const START_TIMEOUT_MS = 90_000
const STOP_TIMEOUT_S = 10

/** A service in a container of its own, by testcontainers, whose reaper removes it when this process dies. */
export class ContainerService implements Service {
  readonly kind: ServiceKind
  readonly url: string
  readonly source = 'container'
  readonly #spec: ContainerSpec
  readonly #port: number
  readonly #container: StartedTestContainer
  #isStopped = false

  constructor(spec: ContainerSpec, port: number, container: StartedTestContainer) {
    this.kind = spec.kind
    this.url = spec.urlOf(port)
    this.#spec = spec
    this.#port = port
    this.#container = container
  }

  /** Its processes belong to the runtime. */
  cpuSeconds(): undefined {
    return undefined
  }

  peakRssBytes(): undefined {
    return undefined
  }

  async kill(): Promise<void> {
    const handle = await this.#handle()
    if ((await handle.inspect()).State.Running) await handle.kill()
  }

  async freeze(): Promise<void> {
    await (await this.#handle()).pause()
  }

  async thaw(): Promise<void> {
    const handle = await this.#handle()
    if ((await handle.inspect()).State.Paused) await handle.unpause()
  }

  async restart(): Promise<void> {
    if (this.#isStopped) throw new ServiceError(`${this.kind} has been stopped for good`)
    await this.thaw()
    const handle = await this.#handle()
    await handle.restart({ t: STOP_TIMEOUT_S })
    await this.waitUntilReady()
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    await this.#container.stop({ remove: true, removeVolumes: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /**
   * Runs a program inside.
   * @returns its standard output
   * @throws {ServiceError} with its output when it fails.
   */
  async run(...command: readonly string[]): Promise<string> {
    const { exitCode, stdout, output } = await this.#container.exec([...command])
    if (exitCode !== 0) throw new ServiceError(`${command.join(' ')}: ${output.trim()}`)
    return stdout
  }

  /** testcontainers stops and removes in one step; a crash needs the runtime itself. */
  async #handle() {
    const { getContainerRuntimeClient } = await import('testcontainers')
    return (await getContainerRuntimeClient()).container.getById(this.#container.getId())
  }

  /** Resolves when it answers. */
  async waitUntilReady(): Promise<void> {
    await waitFor(`${this.kind} in its container to answer`, START_TIMEOUT_MS, () =>
      this.#spec.ping(this.#port).then(
        () => true,
        () => false,
      ),
    )
  }
}

/**
 * Creates a container and starts the service in it.
 * @throws {ServiceError} when no runtime answers, or the service does not start.
 */
export async function startContainer(spec: ContainerSpec): Promise<ContainerService> {
  const port = await freePort()
  const service = new ContainerService(spec, port, await createContainer(spec, port))
  try {
    await service.waitUntilReady()
    return service
  } catch (error) {
    await service.stop()
    throw error
  }
}

async function createContainer(spec: ContainerSpec, port: number): Promise<StartedTestContainer> {
  const runtime = await findContainerRuntime()
  if (runtime === undefined) throw new ServiceError('no container runtime answers')
  // testcontainers does not find Podman by itself.
  process.env.DOCKER_HOST ??= runtime
  const { GenericContainer, Wait } = await import('testcontainers')
  const container = new GenericContainer(spec.image)
    .withExposedPorts({ container: spec.port, host: port })
    .withEnvironment({ ...spec.environment })
    .withWaitStrategy(Wait.forListeningPorts())
    .withStartupTimeout(CREATE_TIMEOUT_MS)
    .withCopyContentToContainer(Object.entries(spec.files ?? {}).map(([target, content]) => ({ target, content })))
  if (spec.command !== undefined) container.withCommand([...spec.command])
  try {
    return await container.start()
  } catch (cause) {
    throw new ServiceError(`${spec.image} did not start in a container: ${String(cause)}`, cause)
  }
}
