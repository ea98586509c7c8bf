"""Which dependency means which technology: one table, the most telling first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

MOST_NAMED: Final = 16
"""More would fill a prompt with what nobody asks for."""


class Ecosystem(StrEnum):
    """Where a dependency's name means something."""

    JVM = "jvm"
    """`group:artifact`, and `plugin:<id>` of Gradle."""
    NPM = "npm"
    PYPI = "pypi"
    GO = "go"
    CARGO = "cargo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A name in its ecosystem, as it is compared: lower case, `_` of Python's and Rust's names as `-`."""

    ecosystem: Ecosystem
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Technology:
    """What people call it, and shell patterns of the dependencies that mean it."""

    name: str
    patterns: tuple[tuple[Ecosystem, str], ...]


def technologies(dependencies: Collection[Dependency]) -> tuple[str, ...]:
    """What people call these, each once, at most `MOST_NAMED`, in the order of the table."""
    named = [technology.name for technology in _TABLE if _is_meant(technology, dependencies)]
    return tuple(named[:MOST_NAMED])


def _is_meant(technology: _Technology, dependencies: Collection[Dependency]) -> bool:
    return any(
        dependency.ecosystem is ecosystem and fnmatchcase(dependency.name, pattern)
        for ecosystem, pattern in technology.patterns
        for dependency in dependencies
    )


def _table(lines: Sequence[str]) -> tuple[_Technology, ...]:
    return tuple(_technology(line) for line in lines)


def _technology(line: str) -> _Technology:
    name, _, patterns = line.partition(" = ")
    pairs = [pattern.split("/", 1) for pattern in patterns.split()]
    return _Technology(
        name=name.strip(), patterns=tuple((Ecosystem(ecosystem), pattern) for ecosystem, pattern in pairs)
    )


_TABLE: Final = _table(
    [
        # Languages that a build file does not say by itself.
        "Kotlin = jvm/org.jetbrains.kotlin:* jvm/plugin:org.jetbrains.kotlin.* jvm/plugin:kotlin*",
        "Scala = jvm/org.scala-lang:* jvm/plugin:scala",
        "TypeScript = npm/typescript",
        # What an application stands on.
        "Spring Boot = jvm/org.springframework.boot:* jvm/plugin:org.springframework.boot",
        "Spring Cloud = jvm/org.springframework.cloud:*",
        "Quarkus = jvm/io.quarkus*:* jvm/plugin:io.quarkus",
        "Micronaut = jvm/io.micronaut*:* jvm/plugin:io.micronaut*",
        "Ktor = jvm/io.ktor:*",
        "Dubbo = jvm/org.apache.dubbo:* jvm/com.alibaba:dubbo*",
        "Android = jvm/plugin:com.android.* jvm/com.android.tools.build:* jvm/androidx.*:*",
        "Jetpack Compose = jvm/androidx.compose*:* jvm/plugin:org.jetbrains.compose",
        "IntelliJ Platform = jvm/plugin:org.jetbrains.intellij*",
        "Next.js = npm/next",
        "React = npm/react",
        "React Native = npm/react-native",
        "Vue = npm/vue",
        "Nuxt = npm/nuxt",
        "Angular = npm/@angular/core",
        "Svelte = npm/svelte",
        "Electron = npm/electron",
        "Express = npm/express",
        "NestJS = npm/@nestjs/core",
        "Django = pypi/django",
        "Flask = pypi/flask",
        "FastAPI = pypi/fastapi",
        "PyTorch = pypi/torch",
        "TensorFlow = pypi/tensorflow",
        "NumPy = pypi/numpy",
        "pandas = pypi/pandas",
        "Gin = go/github.com/gin-gonic/gin",
        "Echo = go/github.com/labstack/echo*",
        "Fiber = go/github.com/gofiber/fiber*",
        "Kubernetes client = go/k8s.io/client-go",
        "Tokio = cargo/tokio",
        "Axum = cargo/axum",
        "Actix Web = cargo/actix-web",
        "Tauri = cargo/tauri npm/@tauri-apps/api",
        # How it keeps data.
        "MyBatis = jvm/org.mybatis*:* jvm/com.baomidou:mybatis-plus*",
        "Hibernate = jvm/org.hibernate*:* jvm/org.springframework.boot:spring-boot-starter-data-jpa",
        "jOOQ = jvm/org.jooq:*",
        "Room = jvm/androidx.room:*",
        "ObjectBox = jvm/io.objectbox:* jvm/plugin:io.objectbox",
        "SQLAlchemy = pypi/sqlalchemy",
        "Prisma = npm/prisma npm/@prisma/client",
        "TypeORM = npm/typeorm",
        "GORM = go/gorm.io/gorm",
        "Diesel = cargo/diesel",
        "SQLx = cargo/sqlx",
        "MySQL = jvm/com.mysql:* jvm/mysql:* npm/mysql npm/mysql2 pypi/pymysql pypi/mysqlclient"
        " pypi/mysql-connector-python go/github.com/go-sql-driver/mysql go/gorm.io/driver/mysql",
        "PostgreSQL = jvm/org.postgresql:* npm/pg pypi/psycopg* pypi/asyncpg go/github.com/lib/pq"
        " go/github.com/jackc/pgx* go/gorm.io/driver/postgres cargo/tokio-postgres",
        "SQLite = jvm/org.xerial:sqlite-jdbc npm/better-sqlite3 npm/sqlite3 pypi/aiosqlite"
        " go/github.com/mattn/go-sqlite3 cargo/rusqlite",
        "H2 = jvm/com.h2database:h2",
        "Oracle Database = jvm/com.oracle.database.*:* pypi/oracledb",
        "MongoDB = jvm/org.mongodb:* jvm/org.springframework.boot:spring-boot-starter-data-mongodb* npm/mongodb"
        " npm/mongoose pypi/pymongo pypi/motor go/go.mongodb.org/mongo-driver* cargo/mongodb",
        "Redis = jvm/redis.clients:jedis jvm/io.lettuce:* jvm/org.redisson:*"
        " jvm/org.springframework.boot:spring-boot-starter-data-redis* npm/redis npm/ioredis pypi/redis"
        " go/github.com/redis/go-redis* go/github.com/go-redis/redis* cargo/redis",
        "Elasticsearch = jvm/org.elasticsearch*:* jvm/co.elastic.clients:* npm/@elastic/elasticsearch"
        " pypi/elasticsearch go/github.com/elastic/go-elasticsearch*",
        "LMDB = pypi/lmdb cargo/heed npm/lmdb",
        # How its parts talk.
        "Kafka = jvm/org.apache.kafka:* jvm/org.springframework.kafka:* npm/kafkajs pypi/kafka-python"
        " pypi/confluent-kafka go/github.com/segmentio/kafka-go go/github.com/ibm/sarama cargo/rdkafka",
        "RabbitMQ = jvm/com.rabbitmq:* jvm/org.springframework.boot:spring-boot-starter-amqp npm/amqplib pypi/pika"
        " go/github.com/rabbitmq/amqp091-go cargo/lapin",
        "RocketMQ = jvm/org.apache.rocketmq:*",
        "gRPC = jvm/io.grpc:* npm/@grpc/grpc-js pypi/grpcio go/google.golang.org/grpc cargo/tonic",
        "GraphQL = jvm/com.graphql-java:* npm/graphql pypi/graphene pypi/strawberry-graphql cargo/async-graphql",
        "Celery = pypi/celery",
        "LangChain = pypi/langchain npm/langchain jvm/dev.langchain4j:*",
    ]
)
