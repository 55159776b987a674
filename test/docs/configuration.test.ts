import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { environmentNameOf, type OptionSpec } from '../../packages/server/src/doors/options/spec.js'
import { OPTIONS } from '../../packages/server/src/doors/options/table.js'
import { configurationPage } from '../../scripts/lib/configuration-page.mjs'

it('docs/configuration.md is what the table of options says; `npm run docs:configuration` writes it anew', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page).toBe(configurationPage())
})

it.each(OPTIONS.map((spec): [string, OptionSpec] => [spec.name, spec]))('describes %s', (name, spec) => {
  const [, text = ''] = configurationPage().split(`### \`${name}\`\n`)
  const entry = text.split('\n#')[0] ?? ''
  expect(entry).toContain('Default: ')
  if (spec.type !== 'switch') expect(entry).toContain('Allowed: ')
  expect(entry).toContain(`--${spec.flag}`)
  expect(entry).toContain(environmentNameOf(spec))
  expect(entry).not.toMatch(/undefined|NaN/)
})
