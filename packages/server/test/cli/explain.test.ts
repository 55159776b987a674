import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { DOCS_URL, ERRORS } from 'webmq-client/protocol'
import '../../copy-files.mjs'
import { runInProcess } from './in-process.js'

const page = readFileSync(new URL('../../../../docs/errors.md', import.meta.url), 'utf8')

describe('webmq-server explain', () => {
  it('prints the section of an error, with what the table knows and the address of the page', async () => {
    const { exitCode, stdout, stderr } = await runInProcess(['explain', 'E_ORIGIN_FORBIDDEN'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(
      /^E_ORIGIN_FORBIDDEN: origin is not allowed\nclient acts, not retryable, HTTP status 403\n\n/,
    )
    expect(stdout).toMatch(/\n- Cause: .+\n(.+\n)*- Fix: .+\n/)
    expect(stdout.trimEnd().endsWith(`\n${DOCS_URL}errors.md#e_origin_forbidden`)).toBe(true)
  })

  it.each(Object.keys(ERRORS))('has the whole section of %s, and nothing of others', async (code) => {
    const { stdout } = await runInProcess(['explain', code, '--json'])
    const { text, ...facts } = JSON.parse(stdout) as { text: string }
    expect(facts).toMatchObject({ code, ...ERRORS[code as keyof typeof ERRORS] })
    expect(text.match(/^- (Cause|Fix): /gm)).toEqual(['- Cause: ', '- Fix: '])
    expect(text).not.toMatch(/^#|^> |^Acts: |\]\(/m)
    const section = page.split(`\n### ${code}\n`)[1]?.split(/\n#{2,3} /)[0] ?? ''
    const body = section.slice(section.indexOf('\n', section.indexOf('Acts: '))).trim()
    expect(text.replaceAll(/ \(https:[^)]*\)/g, '')).toBe(body.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
  })

  it('knows close codes, and codes in any case', async () => {
    expect((await runInProcess(['explain', '4008'])).stdout).toMatch(/^E_SLOW_CONSUMER: /)
    expect((await runInProcess(['explain', 'e_drain'])).stdout).toMatch(/^E_DRAIN: .+\n.*close code 4001/)
  })

  it.each([
    ['E_ORIGIN_FORBIDEN', 'did you mean E_ORIGIN_FORBIDDEN?'],
    ['broker', 'did you mean E_BROKER_UNAVAILABLE or E_BROKER_MISSING or E_BROKER_REFUSED?'],
    ['4999', '`webmq-server explain` lists all'],
  ])('suggests what may be meant with %s', async (name, hint) => {
    const { exitCode, stdout, stderr } = await runInProcess(['explain', name])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(`${name}: unknown error or close code`)
    expect(stderr).toContain(hint)
  })

  it('lists all codes, with their close codes', async () => {
    const { stdout } = await runInProcess(['explain'])
    expect(stdout.trimEnd().split('\n')).toHaveLength(Object.keys(ERRORS).length)
    expect(stdout).toMatch(/^E_SLOW_CONSUMER +4008 +client reads too slowly$/m)
  })

  it('is named where an error is printed', async () => {
    const { stderr } = await runInProcess(['--port', 'x'])
    expect(stderr).toMatch(/\(E_OPTION_INVALID\)\nwebmq-server explain E_OPTION_INVALID says more\n$/)
  })
})
