import { setChecks } from './checks.js'
import { watchConnections } from './connection/context.js'
import { explain, explainFull } from './development/explain.js'
import { linkOf } from './development/link.js'
import { checkOptions } from './development/options.js'
import { adviceFor } from './development/payload-advice.js'
import { checkPublish, checkRange } from './development/range.js'
import { tokenDefect } from './development/token-defect.js'
import { watch } from './development/watch.js'
import { warnOfWords } from './development/words.js'
import { encodeJson } from './protocol/encode-json.js'
import { ERRORS, endMessages, explainDetails } from './protocol/errors.js'
import { validateKey, validatePattern } from './protocol/keys.js'

setChecks({
  errors: ERRORS,
  options: checkOptions,
  range: checkRange,
  publish: checkPublish,
  encodeJson: (payload) => encodeJson(payload, adviceFor),
  key: (key) => {
    validateKey(key)
    warnOfWords(key)
  },
  pattern: (pattern) => {
    validatePattern(pattern)
    warnOfWords(pattern)
  },
  token: tokenDefect,
  full: explainFull,
})

watchConnections(watch)
endMessages(linkOf)
explainDetails(explain)

export * from './index.js'
