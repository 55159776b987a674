import { setChecks } from './core/checks.js'
import { watchConnections } from './core/connection/context.js'
import { explain, explainFull } from './dev/checks/explain.js'
import { linkOf } from './dev/checks/link.js'
import { checkOptions } from './dev/checks/options.js'
import { checkEvent, checkPart, checkReceiver } from './dev/checks/parts.js'
import { adviceFor } from './dev/checks/payload-advice.js'
import { checkPublish, checkRange } from './dev/checks/range.js'
import { tokenDefect } from './dev/checks/token-defect.js'
import { watch } from './dev/checks/watch.js'
import { warnOfWords } from './dev/checks/words.js'
import { encodeJson } from './protocol/encode-json.js'
import { ERRORS, endMessages, explainDetails } from './protocol/errors.js'
import { validateKey, validatePattern } from './protocol/keys.js'

setChecks({
  errors: ERRORS,
  options: checkOptions,
  range: checkRange,
  part: checkPart,
  event: checkEvent,
  receiver: checkReceiver,
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
