import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import net from 'node:net'
import { text } from 'node:stream/consumers'

/** What `POST /containers/create` takes, as far as it is looked at. */
interface Created {
  readonly Image: string
  readonly Cmd?: readonly string[]
  readonly HostConfig: { readonly PortBindings: Readonly<Record<string, readonly { readonly HostPort: string }[]>> }
}

/** Container: what was asked of it, and the program inside, which is a server of this process. */
class StandInContainer {
  readonly created: Created
  readonly files: string[] = []
  isPaused = false
  #program: net.Server | undefined

  constructor(created: Created) {
    this.created = created
  }

  get isRunning(): boolean {
    return this.#program !== undefined
  }

  /** Answers `PING` on each port that is bound. */
  async start(): Promise<void> {
    const [port] = Object.values(this.created.HostConfig.PortBindings).flat()
    this.#program = net.createServer((socket) => {
      socket.on('error', () => socket.destroy())
      socket.once('data', () => socket.end('+PONG\r\n'))
    })
    this.#program.listen(Number(port?.HostPort), '127.0.0.1')
    await once(this.#program, 'listening')
  }

  end(): void {
    this.#program?.close()
    this.#program = undefined
  }
}

/** The part of the Docker Engine API that testcontainers calls, on a socket, without an engine. */
export class StandInDocker {
  readonly containers = new Map<string, StandInContainer>()
  readonly pulled: string[] = []
  /** Commands that ran inside. */
  readonly commands: string[][] = []
  readonly removed: string[] = []
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })

  async listen(socket: string): Promise<void> {
    this.#server.listen(socket)
    await once(this.#server, 'listening')
  }

  close(): void {
    for (const container of this.containers.values()) container.end()
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://docker')
    const call = `${request.method} ${pathname.replace(/^\/v[\d.]+/, '')}`
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (call === 'GET /_ping') return void response.end('OK')
    if (call === 'GET /info') return void json(200, { ServerVersion: '28', OperatingSystem: 'Linux', OSType: 'linux' })
    // Where the library finds the host when this process is in a container itself.
    if (call === 'GET /networks/bridge') return void json(200, { IPAM: { Config: [{ Gateway: '127.0.0.1' }] } })
    if (call === 'GET /containers/json') return void json(200, [])
    if (/^GET \/images\/.*\/json$/.test(call)) return void json(404, { message: 'No such image' })
    if (call === 'POST /images/create') {
      this.pulled.push(`${searchParams.get('fromImage')}:${searchParams.get('tag')}`)
      return void json(200, { status: 'Downloaded' })
    }
    if (call === 'POST /containers/create') {
      const id = `c${this.containers.size + 1}`
      this.containers.set(id, new StandInContainer(JSON.parse(await text(request)) as Created))
      return void json(201, { Id: id, Warnings: [] })
    }
    if (/^POST \/exec\/e\d+\/start$/.test(call)) {
      // Standard output: the number of the stream, three zeros, the length, the text.
      return void response.end(Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, 2]), Buffer.from('ok')]))
    }
    if (/^GET \/exec\/e\d+\/json$/.test(call)) return void json(200, { ExitCode: 0, Running: false })
    const [, verb = '', id = '', action = ''] = /^(\w+) \/containers\/(\w+)\/?(\w*)$/.exec(call) ?? []
    const container = this.containers.get(id)
    if (container === undefined) return void json(404, { message: `the stand-in does not know ${call}` })
    switch (`${verb} ${action}`) {
      case 'GET json':
        return void json(200, inspection(id, container))
      case 'PUT archive':
        container.files.push(await text(request))
        return void response.end()
      case 'POST start':
        await container.start()
        return void response.writeHead(204).end()
      case 'POST restart':
        container.end()
        await container.start()
        return void response.writeHead(204).end()
      case 'POST kill':
      case 'POST stop':
        container.end()
        return void response.writeHead(204).end()
      case 'POST pause':
      case 'POST unpause':
        container.isPaused = action === 'pause'
        return void response.writeHead(204).end()
      case 'POST exec':
        this.commands.push((JSON.parse(await text(request)) as { Cmd: string[] }).Cmd)
        return void json(201, { Id: `e${this.commands.length}` })
      case 'DELETE ':
        this.removed.push(id)
        return void response.writeHead(204).end()
      default:
        return void json(404, { message: `the stand-in does not know ${call}` })
    }
  }
}

function inspection(id: string, { created, isRunning, isPaused }: StandInContainer) {
  const { PortBindings } = created.HostConfig
  const bound = Object.entries(PortBindings).map(([port, [host]]) => [
    port,
    [{ HostIp: '0.0.0.0', HostPort: host?.HostPort }],
  ])
  return {
    Id: id,
    Name: `/${id}`,
    Config: { Hostname: id, Labels: {}, ExposedPorts: Object.fromEntries(bound.map(([port]) => [port, {}])) },
    HostConfig: { PortBindings },
    State: {
      Running: isRunning,
      Paused: isPaused,
      Status: isRunning ? 'running' : 'exited',
      StartedAt: '2026-01-01T00:00:00Z',
      FinishedAt: '0001-01-01T00:00:00Z',
    },
    NetworkSettings: { Ports: Object.fromEntries(bound), Networks: {} },
  }
}
