import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findContainerRuntime } from '../src/container/runtime.js'

describe('a container runtime', () => {
  it('counts when it answers the ping of its API', async () => {
    const socket = await listen((request, response) =>
      response.writeHead(request.url === '/_ping' ? 200 : 404).end('OK'),
    )
    expect(await findContainerRuntime({ DOCKER_HOST: `unix://${socket}` })).toBe(`unix://${socket}`)
  })

  it('does not count when it answers with an error, or is no runtime', async () => {
    const socket = await listen((_, response) => response.writeHead(503).end())
    expect(await findContainerRuntime({ DOCKER_HOST: `unix://${socket}` })).toBeUndefined()
    const file = path.join(temporaryFolder(), 'docker.sock')
    writeFileSync(file, '')
    expect(await findContainerRuntime({ DOCKER_HOST: `unix://${file}` })).toBeUndefined()
    expect(await findContainerRuntime({ DOCKER_HOST: 'tcp://127.0.0.1:1' })).toBeUndefined()
  })

  it('does not count on another machine, where its services would not be on loopback', async () => {
    expect(await findContainerRuntime({ DOCKER_HOST: 'tcp://docker.example:2375' })).toBeUndefined()
  })

  it('is found where Podman puts its socket', async () => {
    const folder = temporaryFolder()
    mkdirSync(path.join(folder, 'podman'))
    await listen((_, response) => response.end('OK'), path.join(folder, 'podman', 'podman.sock'))
    // A Docker of this machine comes first.
    expect(await findContainerRuntime({ XDG_RUNTIME_DIR: folder })).toMatch(/podman\.sock$|docker\.sock$/)
  })
})

async function listen(answer: RequestListener, socket = path.join(temporaryFolder(), 'socket')): Promise<string> {
  const server = createServer(answer).listen(socket)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
  })
  return socket
}

function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-runtime-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
