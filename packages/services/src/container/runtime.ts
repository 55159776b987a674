import { get } from 'node:http'
import { homedir } from 'node:os'
import path from 'node:path'

const PING_TIMEOUT_MS = 2_000

/**
 * The address of a responding container runtime of this machine, in the form of `DOCKER_HOST`: that variable, else a
 * socket of Docker or Podman. The runtime must answer: a `docker` program or a socket file alone proves nothing.
 */
export async function findContainerRuntime(env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const given = env.DOCKER_HOST
  for (const address of given === undefined || given === ''
    ? socketPaths(env).map((file) => `unix://${file}`)
    : [given]) {
    if (await answersPing(address)) return address
  }
  return undefined
}

/** Whether a service can run in a container: a runtime answers, and testcontainers, an optional peer, is installed. */
export async function canRunContainers(): Promise<boolean> {
  if ((await findContainerRuntime()) === undefined) return false
  try {
    await import('testcontainers')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    return false
  }
}

function socketPaths(env: NodeJS.ProcessEnv): readonly string[] {
  const runtimeFolder = env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? ''}`
  return [
    '/var/run/docker.sock',
    path.join(runtimeFolder, 'docker.sock'),
    path.join(homedir(), '.docker', 'run', 'docker.sock'),
    path.join(runtimeFolder, 'podman', 'podman.sock'),
    '/run/podman/podman.sock',
  ]
}

/** Docker Engine API, `GET /_ping`; Podman answers it, too. */
function answersPing(address: string): Promise<boolean> {
  const { protocol, hostname, port, pathname } = new URL(address)
  if (protocol !== 'unix:' && !(protocol === 'tcp:' && isLoopback(hostname))) return Promise.resolve(false)
  const target = protocol === 'unix:' ? { socketPath: pathname } : { host: hostname, port }
  return new Promise((resolve) => {
    const request = get({ ...target, path: '/_ping', timeout: PING_TIMEOUT_MS }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false)) // Nobody there: that is the answer.
    request.on('close', () => resolve(false))
  })
}

/** A container of another machine would not be on loopback. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.startsWith('127.')
}
