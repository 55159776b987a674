// `npm run docs:bounds`: writes docs/bounds.md from the constants of the sources.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { boundsPage } from './lib/bounds-page.mjs'
import { ROOT } from './lib/steps.mjs'

writeFileSync(path.join(ROOT, 'docs/bounds.md'), boundsPage())
