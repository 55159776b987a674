import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import { obtainService } from '../src/index.js'
import { processesOf } from './running-processes.js'

const PROGRAM = fileURLToPath(new URL('orphaned-process.mjs', import.meta.url))
const TIMEOUT_MS = 60_000

it('leaves no service and no data behind when its process is killed', { timeout: TIMEOUT_MS }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-orphans-'))
  const owner = spawn(process.execPath, [PROGRAM], { env: { ...process.env, TMPDIR: folder }, stdio: 'inherit' })
  onTestFinished(async () => {
    owner.kill('SIGKILL')
    await vi.waitFor(() => expect(processesOf(folder)).toEqual([]))
    rmSync(folder, { recursive: true, force: true })
  })
  const redis = path.basename((await obtainService('redis')).place ?? '')
  const programs = [redis, 'nats-server', 'epmd', 'beam.smp', 'erl_child_setup']
  await vi.waitFor(
    () => expect(processesOf(folder).map(({ name }) => name)).toEqual(expect.arrayContaining(programs)),
    { timeout: 30_000, interval: 20 },
  )
  expect(dataFoldersIn(folder)).toHaveLength(3)

  owner.kill('SIGKILL')
  await vi.waitFor(() => expect(processesOf(folder)).toEqual([]), { interval: 20 })
  expect(dataFoldersIn(folder)).toEqual([])
})

function dataFoldersIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /^webmq-(rabbitmq|redis|nats)-/.test(name))
}
