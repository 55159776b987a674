import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type BalancerName, obtainBalancer } from './balancer-program.js'
import { freePort } from './free-port.js'
import { ask } from './ping.js'
import { dataFolder } from './program-service.js'
import { ServiceError } from './service-error.js'
import { SupervisedProcess } from './supervised-process.js'

/** A real HAProxy or nginx on loopback in front of several nodes: a new connection goes to the one with the fewest. */
export interface LoadBalancer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly host: string
  readonly port: number
  /** User and system time of its process so far; `undefined` where unknown. */
  cpuSeconds(): number | undefined
  /** Largest resident memory of its process so far; `undefined` when it does not run. */
  peakRssBytes(): number | undefined
  /** Ends it with its connections. Idempotent. */
  stop(): Promise<void>
}

/** Settings of a load balancer. */
export interface LoadBalancerOptions {
  /** Ports of the nodes on 127.0.0.1. A node gets connections once it listens. */
  readonly ports: readonly number[]
  /** Paths of the Unix sockets of further nodes. */
  readonly sockets?: readonly string[]
  /** Default `haproxy`. nginx checks no nodes by itself: it asks the next one when one refuses or answers 503. */
  readonly program?: BalancerName
  /** Connections at once; each takes two of 20,000 descriptors. Default and most: 9,900. */
  readonly maxConnections?: number
  /** HAProxy: a node that does not answer two checks in a row within this time loses its connections; default 1,000. */
  readonly checkTimeoutMs?: number
  /** HAProxy: a node is in use while it answers 200 here; default `/ready`. */
  readonly checkPath?: string
  /** HAProxy tells the nodes who the client is by the PROXY protocol, version 2; default false: by `X-Forwarded-For` alone. */
  readonly proxyProtocol?: boolean
  /** Keeps connections to the nodes, and sends requests of any client through each; default false. */
  readonly sharesConnections?: boolean
}

const HOST = '127.0.0.1'
const MAX_CONNECTIONS = 9_900
/**
 * A node that crashes or leaves gets no new connection after two checks. A refused connection goes to the next at once.
 */
const CHECK_INTERVAL_MS = 200
const CHECK_TIMEOUT_MS = 1_000
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 1_000
const POLL_INTERVAL_MS = 20
/** Attempts to start when another program takes the free port before the balancer does. */
const MAX_START_ATTEMPTS = 5
const PORT_TAKEN = /address already in use/i
/** The balancer itself answers here, independent of its nodes. */
const MONITOR_PATH = '/balancer-is-up'

/** How each program is run in the foreground, as one process. */
const PROGRAMS = {
  haproxy: { configOf: haproxyConfig, argsOf: (file: string) => ['-db', '-f', file] },
  nginx: { configOf: nginxConfig, argsOf: (file: string) => ['-p', path.dirname(file), '-e', 'stderr', '-c', file] },
} as const

/**
 * A load balancer that accepts connections; its nodes may still be starting.
 * @throws {ServiceError} when its program is not available, or does not start.
 */
export async function startLoadBalancer(options: LoadBalancerOptions): Promise<LoadBalancer> {
  const { file } = await obtainBalancer(options.program ?? 'haproxy')
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(file, options)
    } catch (error) {
      if (attempt >= MAX_START_ATTEMPTS || !PORT_TAKEN.test(String(error))) throw error
    }
  }
}

async function start(command: string, options: LoadBalancerOptions): Promise<LoadBalancer> {
  const { program: title = 'haproxy' } = options
  const { configOf, argsOf } = PROGRAMS[title]
  const port = await freePort()
  const folder = await dataFolder(title)
  const configFile = path.join(folder, 'balancer.cfg')
  await writeFile(configFile, configOf(port, options))
  const process = new SupervisedProcess({ title, command, args: argsOf(configFile), folder })
  const balancer = new RunningBalancer(process, folder, port)
  try {
    await waitUntilReady(process, port)
    return balancer
  } catch (error) {
    await balancer.stop()
    throw error
  }
}

function placesOf({ ports, sockets = [] }: LoadBalancerOptions, scheme: string): readonly string[] {
  return [...ports.map((port) => `${HOST}:${port}`), ...sockets.map((path) => scheme + path)]
}

/** Like `deploy/haproxy.cfg`, except for its container names and the times of checks. */
function haproxyConfig(port: number, options: LoadBalancerOptions): string {
  const { maxConnections = MAX_CONNECTIONS, proxyProtocol = false } = options
  const { checkTimeoutMs = CHECK_TIMEOUT_MS, checkPath = '/ready', sharesConnections = false } = options
  return `global
  maxconn ${Math.min(MAX_CONNECTIONS, maxConnections)}

defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout tunnel 90s
  timeout check ${checkTimeoutMs}ms
  option forwardfor
  retries 3
  option redispatch 1
  retry-on conn-failure empty-response 503

frontend public
  bind ${HOST}:${port}
  monitor-uri ${MONITOR_PATH}
  default_backend nodes

backend nodes
  balance leastconn
  http-reuse ${sharesConnections ? 'always' : 'safe'}
  option httpchk GET ${checkPath}
  http-check expect error-status L7OKC status 200
  default-server check inter ${CHECK_INTERVAL_MS}ms fall 2 rise 1 on-marked-down shutdown-sessions${proxyProtocol ? ' send-proxy-v2 check-send-proxy' : ''}
${placesOf(options, 'unix@')
  .map((place, index) => `  server node${index} ${place}`)
  .join('\n')}
`
}

/** Like `deploy/nginx.conf`, except for the names of its nodes and where it writes. */
function nginxConfig(port: number, options: LoadBalancerOptions): string {
  const { maxConnections = MAX_CONNECTIONS, sharesConnections = false } = options
  return `daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid nginx.pid;
events {
  worker_connections ${2 * Math.min(MAX_CONNECTIONS, maxConnections)};
}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  map $http_upgrade $connection_upgrade {
    default upgrade;
    '' ${sharesConnections ? "''" : 'close'};
  }
  upstream nodes {
    least_conn;
${placesOf(options, 'unix:')
  .map((place) => `    server ${place} max_fails=0;`)
  .join('\n')}
${sharesConnections ? '    keepalive 8;' : ''}
  }
  server {
    listen ${HOST}:${port};
    location = ${MONITOR_PATH} {
      return 200;
    }
    location / {
      proxy_pass http://nodes;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_connect_timeout 1s;
      proxy_next_upstream error timeout http_502 http_503;
      proxy_next_upstream_tries 3;
      proxy_read_timeout 90s;
      proxy_send_timeout 90s;
    }
  }
}
`
}

async function waitUntilReady(process: SupervisedProcess, port: number): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      await ask(port, `GET ${MONITOR_PATH} HTTP/1.0\r\n\r\n`, (received) => / 200 .*\r\n\r\n/s.test(received))
      return
    } catch (cause) {
      if (!process.isRunning || Date.now() > deadline)
        throw new ServiceError(`the load balancer did not start: ${process.output}`, cause)
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
    }
  }
}

class RunningBalancer implements LoadBalancer {
  readonly host = HOST
  readonly port: number
  readonly #process: SupervisedProcess
  readonly #folder: string

  constructor(process: SupervisedProcess, folder: string, port: number) {
    this.#process = process
    this.#folder = folder
    this.port = port
  }

  get url(): string {
    return `http://${HOST}:${this.port}`
  }

  cpuSeconds(): number | undefined {
    return this.#process.cpuSeconds()
  }

  peakRssBytes(): number | undefined {
    return this.#process.peakRssBytes()
  }

  async stop(): Promise<void> {
    try {
      await this.#process.end(STOP_TIMEOUT_MS)
    } finally {
      await rm(this.#folder, { recursive: true, force: true })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
