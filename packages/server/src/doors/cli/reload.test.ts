import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { recordingLogger } from '../../../test/fake-server.js'
import type { ServerOptions } from '../options/server-options.js'
import { OPTIONS } from '../options/table.js'
import { readConfigFile } from './config-file.js'
import { type FileRecorder, mergeSources } from './option-sources.js'
import { Reload } from './reload.js'

const [OLD, NEW] = ['an old secret of sixteen bytes or more', 'a new secret of sixteen bytes or more']

async function startReload() {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [config, secretFile] = [join(folder, 'webmq.json'), join(folder, 'secret')]
  const write = (options: object) => writeFileSync(config, JSON.stringify({ jwt: { secretFile }, ...options }))
  write({ maxWords: 7 })
  writeFileSync(secretFile, OLD)
  const read = (record: FileRecorder) => mergeSources([readConfigFile(config, OPTIONS, record)])
  const reload = new Reload(read, 10)
  const taken: ServerOptions[] = []
  const { logger, lines } = recordingLogger()
  const server = {
    reload: (options: ServerOptions) => {
      taken.push(options)
      return { changed: ['jwt.secret'], needRestart: [] }
    },
  }
  await reload.start(server, logger)
  onTestFinished(() => reload.stop())
  return { reload, write, secretFile, taken, lines }
}

it('takes a secret when its file changes, and nothing else', async () => {
  const { reload, write, secretFile, taken } = await startReload()
  write({ maxWords: 8 })
  writeFileSync(secretFile, NEW)
  await vi.waitFor(() => expect(taken.at(-1)).toMatchObject({ jwt: { secret: [NEW] }, maxWords: 7 }))
  reload.all()
  expect(taken.at(-1)).toMatchObject({ jwt: { secret: [NEW] }, maxWords: 8 })
})

it('says once that a changed file cannot be used, and takes the next one', async () => {
  const { secretFile, taken, lines } = await startReload()
  writeFileSync(secretFile, 'short')
  await vi.waitFor(() => expect(lines).toHaveLength(1))
  expect(lines[0]).toMatchObject({ level: 'error', fields: { code: 'E_OPTION_INVALID' } })
  expect(JSON.stringify(lines)).not.toContain('short')
  writeFileSync(secretFile, NEW)
  // A write may be seen twice: the file is emptied first.
  await vi.waitFor(() => expect(taken.at(-1)).toMatchObject({ jwt: { secret: [NEW] } }))
  for (const options of taken) expect(options).toEqual(taken[0])
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
})

it('looks at the files that are named now', async () => {
  const { reload, write, secretFile, taken } = await startReload()
  const moved = `${secretFile}-moved`
  writeFileSync(moved, OLD)
  write({ jwt: { secretFile: moved } })
  reload.all()
  writeFileSync(moved, NEW)
  await vi.waitFor(() => expect(taken.at(-1)).toMatchObject({ jwt: { secret: [NEW] } }))
})
