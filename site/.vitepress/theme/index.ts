import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import FirstPage from './FirstPage.vue'
import LivePlayground from './LivePlayground.vue'
import './style.css'
import './playground.css'
import VersionMenu from './VersionMenu.vue'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component('FirstPage', FirstPage)
    app.component('LivePlayground', LivePlayground)
    app.component('VersionMenu', VersionMenu)
  },
} satisfies Theme
