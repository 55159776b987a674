import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { startContainer } from '../src/container/service.js'
import { pingRedis } from '../src/ping.js'
import { StandInDocker } from './stand-in-docker.js'

it('a service in a container starts, stands still, dies, comes back and is removed, by the calls of testcontainers', async () => {
  const docker = await standIn()
  const service = await startContainer({
    kind: 'redis',
    image: 'redis:8.0-alpine',
    port: 6379,
    command: ['redis-server', '--save', ''],
    files: { '/etc/webmq.conf': 'maxmemory 1mb\n' },
    urlOf: (port) => `redis://127.0.0.1:${port}`,
    ping: pingRedis,
  })
  const port = Number(new URL(service.url).port)
  const container = docker.containers.get('c1')
  expect(docker.pulled).toEqual(['redis:8.0-alpine'])
  expect(container?.created).toMatchObject({ Image: 'redis:8.0-alpine', Cmd: ['redis-server', '--save', ''] })
  expect(container?.created.HostConfig.PortBindings).toEqual({ '6379/tcp': [{ HostPort: String(port) }] })
  expect(container?.files.join('')).toContain('maxmemory 1mb')
  expect(await service.run('redis-cli', 'PING')).toBe('ok')
  expect(docker.commands.at(-1)).toEqual(['redis-cli', 'PING'])

  await service.freeze()
  expect(container?.isPaused).toBe(true)
  await service.thaw()
  expect(container?.isPaused).toBe(false)

  await service.kill()
  expect(container?.isRunning).toBe(false)
  await expect(pingRedis(port)).rejects.toThrow('does not answer')
  await service.restart()
  await pingRedis(port)

  await service.stop()
  await service.stop()
  expect(docker.removed).toEqual(['c1'])
  await expect(service.restart()).rejects.toThrow('stopped for good')
})

/** The runtime that testcontainers finds from now on in this file: it looks once. */
async function standIn(): Promise<StandInDocker> {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-docker-'))
  const docker = new StandInDocker()
  await docker.listen(path.join(folder, 'docker.sock'))
  vi.stubEnv('DOCKER_HOST', `unix://${path.join(folder, 'docker.sock')}`)
  // The library's own reaper would be one more container.
  vi.stubEnv('TESTCONTAINERS_RYUK_DISABLED', 'true')
  onTestFinished(() => {
    vi.unstubAllEnvs()
    docker.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return docker
}
