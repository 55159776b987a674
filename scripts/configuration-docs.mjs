// `npm run docs:configuration`: writes docs/configuration.md from the table of options. The server must be compiled.
import { writeFileSync } from 'node:fs'
import { configurationPage } from './lib/configuration-page.mjs'

writeFileSync('docs/configuration.md', configurationPage())
