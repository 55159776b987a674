import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { environmentNameOf, type OptionSpec } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { configDocs } from './config-docs.js'

it('docs/configuration.md is what the table of options says; `npx webmq-server config docs` writes it anew', () => {
  const page = readFileSync(new URL('../../../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page).toBe(configDocs())
})

it.each(OPTIONS.map((spec): [string, OptionSpec] => [spec.name, spec]))('describes %s', (name, spec) => {
  const [, text = ''] = configDocs().split(`### \`${name}\`\n`)
  const entry = text.split('\n#')[0] ?? ''
  expect(entry).toContain('- Default: ')
  expect(entry).toContain('- Allowed: ')
  expect(entry).toContain(`--${spec.flag}`)
  expect(entry).toContain(environmentNameOf(spec))
  expect(entry).not.toMatch(/undefined|NaN/)
})
