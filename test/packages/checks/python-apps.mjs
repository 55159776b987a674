// Applications around the blocks of docs/with/python.md.
import path from 'node:path'
import { must } from '../../../scripts/lib/steps.mjs'

const page = 'with/python.md'

/** A venv; pip has the settings of this machine. */
const withPackages =
  (...packages) =>
  async ({ folder }) => {
    const python = process.env.WEBMQ_TEST_PYTHON ?? 'python3'
    await must('Python has no venv.', python, ['-m', 'venv', path.join(folder, 'venv')], { log: 'venv' })
    const pip = path.join(folder, 'venv', 'bin', 'pip')
    await must('pip cannot install.', pip, ['install', '--quiet', ...packages], { log: 'pip' })
  }

const python = (command) => ['sh', '-c', `exec venv/bin/python -u -m ${command}`]

/** @type {readonly import('./framework-apps.mjs').Framework[]} */
export const PYTHON_FRAMEWORKS = [
  {
    name: 'Django 5.2.19',
    page,
    blocks: ['python', 'django'],
    folder: 'chat',
    isPlain: true,
    takesForms: true,
    install: withPackages('Django==5.2.19'),
    env: { DJANGO_SETTINGS_MODULE: 'settings' },
    files: {
      'chat/__init__.py': '',
      'chat/models.py': `from django.conf import settings
from django.db import models

class Message(models.Model):
    room = models.IntegerField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    text = models.TextField()
`,
      'settings.py': `import os
SECRET_KEY = os.environ["SESSION_SECRET"]
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "chat"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
`,
      'urls.py': `from pathlib import Path

from chat import views
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import ensure_csrf_cookie


def log_in(request):
    login(request, User.objects.get_or_create(username=request.GET["user"])[0])
    return HttpResponse("in")


@ensure_csrf_cookie
def page(request, room):
    return HttpResponse(Path("page.html").read_text())


urlpatterns = [
    path("login", log_in),
    path("rooms/<int:room>", page),
    path("rooms/<int:room>/messages", views.post_message),
    path("token", views.token),
]
`,
    },
    build: [python('django makemigrations chat'), python('django migrate')],
    start: python('django runserver --noreload 127.0.0.1:$PORT'),
    ready: /Starting .*server/,
  },
  {
    name: 'FastAPI 0.165.0',
    page,
    blocks: ['python', 'fastapi'],
    folder: 'app',
    isPlain: true,
    install: withPackages('fastapi==0.165.0', 'uvicorn==0.54.0', 'itsdangerous==2.2.0'),
    files: {
      'app/__init__.py': '',
      'serve.py': `import os
from pathlib import Path

from app.main import app
from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.middleware.sessions import SessionMiddleware

app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_SECRET"])


@app.get("/login")
def log_in(request: Request, user: str) -> str:
    request.session["user"] = user
    return "in"


@app.get("/rooms/{room}", response_class=HTMLResponse)
def page(room: int) -> str:
    return Path("page.html").read_text()
`,
    },
    build: [],
    start: python('uvicorn serve:app --port $PORT'),
    ready: /Uvicorn running/,
  },
]
